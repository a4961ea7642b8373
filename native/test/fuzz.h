// Mutated inputs for the readers of what others wrote: safetensors headers and files, config.json, images.
// Everything an input may do is to be taken or to be refused with a boq::Error; whatever else it does is a
// finding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace boq::test {

/// What became of the inputs of one target.
struct FuzzTally {
  std::string target;
  int64_t taken = 0;
  int64_t refused = 0;
  /// The first few inputs that ended otherwise, with what they ended in.
  std::vector<std::string> findings;
};

/// `inputs` of each target, by a counter-based generator: equal seeds give equal inputs. `folder` takes a few
/// temporary files.
std::vector<FuzzTally> fuzz_all(int64_t inputs, uint64_t seed, const std::filesystem::path& folder);

}  // namespace boq::test
