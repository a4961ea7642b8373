// The short form of the fuzz targets; the long form is boq_fuzz.
#include "native/test/fuzz.h"

#include "doctest/doctest.h"
#include "native/test/temporary_folder.h"

TEST_CASE("fuzz: mutated inputs are taken or refused, nothing else") {
  const boq::test::TemporaryFolder folder;
  for (const auto& tally : boq::test::fuzz_all(1000, 7, folder.path())) {
    INFO(tally.target);
    for (const auto& finding : tally.findings) FAIL_CHECK(finding);
    CHECK(tally.refused > 100);
    CHECK(tally.taken > 10);
  }
}
