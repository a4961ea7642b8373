// Outcomes judged again: a file of labels replaces what the episodes of embedded runs were worth, without
// collecting or embedding anything anew. docs/data-formats.md has the format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "native/iql/transitions.h"

namespace boq::iql {

struct Relabelling {
  int64_t episodes = 0;  ///< that the file names
  int64_t changed = 0;   ///< of these, how many have another outcome than before
};

/// Gives the named episodes of `data`, loaded from `folders`, their labels' outcomes; the others keep theirs.
/// Throws BOQ_FILE_NOT_FOUND, and BOQ_DATA_INVALID with the line for anything that is not a label, for an
/// episode named twice, and for one that no folder has.
Relabelling apply_labels(Transitions& data, const std::vector<std::filesystem::path>& folders,
                         const std::filesystem::path& labels);

}  // namespace boq::iql
