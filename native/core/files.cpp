#include "native/core/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "native/core/error.h"

namespace boq {

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  BOQ_CHECK(!error, ErrorCode::kFileWrite, "cannot make the folder ", folder.string(), ": ", error.message());
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  make_folder(path.parent_path());
  const std::filesystem::path temporary = path.string() + ".part";
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  size_t written = 0;
  bool ok = file >= 0;
  while (ok && written < text.size()) {
    const ssize_t n = ::write(file, text.data() + written, text.size() - written);
    ok = n > 0 || (n < 0 && errno == EINTR);
    if (n > 0) written += static_cast<size_t>(n);
  }
  ok = ok && ::fsync(file) == 0;
  const int problem = errno;
  if (file >= 0) ::close(file);
  if (ok && ::rename(temporary.c_str(), path.c_str()) == 0) return;
  const std::string reason = std::strerror(ok ? errno : problem);
  ::unlink(temporary.c_str());
  fail(ErrorCode::kFileWrite, "cannot write ", path.string(), ": ", reason);
}

}  // namespace boq
