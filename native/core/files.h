// Small files of results, written so that a reader sees the old one or the new one, never a part.
#pragma once

#include <filesystem>
#include <string>

namespace boq {

/// With all folders above it; nothing where it is there. Throws BOQ_FILE_WRITE.
void make_folder(const std::filesystem::path& folder);

/// Writes a text file, and its folder where there is none: temporary, fsync, rename. Throws BOQ_FILE_WRITE.
void write_text(const std::filesystem::path& path, const std::string& text);

}  // namespace boq
