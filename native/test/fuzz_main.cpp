// The long form of the fuzz targets: boq_fuzz [INPUTS] [SEED]. Built with -DBOQ_SANITIZE=ON, a bad access or
// undefined behaviour ends the program at once; without, foreign exceptions and broken invariants are found
// still.
#include <cstdio>
#include <cstdlib>

#include "native/test/fuzz.h"
#include "native/test/temporary_folder.h"

int main(int argc, char** argv) {
  const auto inputs = argc > 1 ? std::atoll(argv[1]) : 100'000;
  const auto seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const boq::test::TemporaryFolder folder;
  size_t findings = 0;
  for (const auto& tally : boq::test::fuzz_all(inputs, seed, folder.path())) {
    std::printf("%s: %lld taken, %lld refused, %zu finding(s)\n", tally.target.c_str(),
                static_cast<long long>(tally.taken), static_cast<long long>(tally.refused),
                tally.findings.size());
    for (const auto& finding : tally.findings) std::printf("  %s\n", finding.c_str());
    findings += tally.findings.size();
  }
  return findings == 0 ? 0 : 1;
}
