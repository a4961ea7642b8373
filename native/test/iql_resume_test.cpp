// Runs that end early: stopped, killed, or out of disk, they go on to the same bytes; what is no checkpoint
// of theirs is refused.
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "doctest/doctest.h"
#include "native/iql/checkpoint.h"
#include "native/iql/trainer.h"
#include "native/test/expect_error.h"
#include "native/test/iql_fixture.h"
#include "native/test/temporary_folder.h"

namespace boq::test {
namespace {

namespace fs = std::filesystem;

TEST_CASE("IQL training: a stopped run goes on to the same bytes") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(40, 8, 3));
  const Json config = run_config(60);
  train_quietly(folder / "data", folder / "whole", config);
  CancelFlag cancel;
  iql::TrainRequest request{{folder / "data"}, folder / "parts", "cpu", config, false};
  const auto stopped = iql::train(
      request, [&](const iql::TrainProgress&) { cancel.cancel(); }, cancel);
  CHECK(stopped.stopped);
  CHECK(stopped.steps < 60);
  CHECK(fs::exists(iql::checkpoint_path(folder / "parts")));
  CHECK(fs::exists(folder / "parts" / "model.safetensors"));
  request.resume = true;
  const auto finished = iql::train(request, nullptr, CancelFlag());
  CHECK(finished.steps == 60);
  check_same_run(folder / "whole", folder / "parts");
}

TEST_CASE("IQL training: a run killed at any moment goes on to the same bytes") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(40, 8, 4));
  Json config = run_config(400);
  config["checkpointEvery"] = 7;
  train_quietly(folder / "data", folder / "whole", config);
  const int kills = std::getenv("BOQ_LONG_TESTS") != nullptr ? 50 : 3;
  int killed = 0;
  for (int kill = 0; kill < kills; ++kill) {
    // A process of its own: this executable, running the worker below alone.
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::setenv("BOQ_TEST_WORKER_DATA", (folder / "data").c_str(), 1);
      ::setenv("BOQ_TEST_WORKER_OUT", (folder / "killed").c_str(), 1);
      ::setenv("BOQ_TEST_WORKER_CONFIG", config.dump().c_str(), 1);
      ::execl("/proc/self/exe", "boq_tests", "--test-case=worker: trains until killed", "--no-skip", nullptr);
      ::_exit(127);
    }
    // The first progress of its own shows that it runs; then it dies wherever it is.
    const auto progressed = [&] { return fs::exists(iql::checkpoint_path(folder / "killed")); };
    int status = 0;
    while (!progressed() && ::waitpid(child, &status, WNOHANG) == 0) ::usleep(1000);
    ::usleep(static_cast<useconds_t>(3000 + 7919 * kill % 40000));
    ::kill(child, SIGKILL);
    if (::waitpid(child, &status, 0) == child) killed += WIFSIGNALED(status);
  }
  CHECK(killed >= 1);  // a machine fast enough to finish every time would prove nothing
  train_quietly(folder / "data", folder / "killed", config, /*resume=*/true);
  check_same_run(folder / "whole", folder / "killed");
}

TEST_CASE("worker: trains until killed" * doctest::skip()) {
  train_quietly(std::getenv("BOQ_TEST_WORKER_DATA"), std::getenv("BOQ_TEST_WORKER_OUT"),
                Json::parse(std::getenv("BOQ_TEST_WORKER_CONFIG")), /*resume=*/true);
}

void flip_byte(const fs::path& path, int64_t from_end) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(-from_end, std::ios::end);
  const char byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(-from_end, std::ios::end);
  file.put(byte);
}

TEST_CASE("IQL training: checkpoints that are damaged, foreign or of other settings are refused") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(40, 8, 5));
  Json config = run_config(30);
  config["keepCheckpoint"] = true;
  const auto resume = [&] { train_quietly(folder / "data", folder / "model", config, true); };
  train_quietly(folder / "data", folder / "model", config);
  CHECK_NOTHROW(resume());
  const fs::path path = iql::checkpoint_path(folder / "model");

  config["gamma"] = 0.5;
  expect_error(ErrorCode::kCheckpointInvalid, "gamma", resume);
  config["gamma"] = 0.99;
  flip_byte(path, 100);
  expect_error(ErrorCode::kCheckpointInvalid, "damaged", resume);
  fs::resize_file(path, 1000);
  expect_error(ErrorCode::kCheckpointInvalid, path.string(), resume);
  fs::copy_file(folder / "model" / "model.safetensors", path, fs::copy_options::overwrite_existing);
  expect_error(ErrorCode::kCheckpointInvalid, "found no 'kind'", resume);
}

/// While it lives no file of this process can grow beyond `bytes`: writing fails as on a full disk.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  sighandler_t handler_;
  rlimit before_{};
};

/// A disk of its own in memory, where this process may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(const fs::path& path) : path_(path) {
    fs::create_directories(path);
    mounted_ = ::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=8m") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool is_mounted() const { return mounted_; }
  void fill() const {
    std::ofstream file(path_ / "filler", std::ios::binary);
    const std::string block(4096, 'x');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }

 private:
  fs::path path_;
  bool mounted_ = false;
};

TEST_CASE("IQL training: a full disk costs the steps since the last checkpoint, nothing else") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(40, 8, 14));
  const Json config = run_config(60);
  train_quietly(folder / "data", folder / "whole", config);
  const auto begin = [&](const fs::path& out) {
    CancelFlag cancel;
    const auto stopped = iql::train(
        {{folder / "data"}, out, "cpu", config, false}, [&](const iql::TrainProgress&) { cancel.cancel(); },
        cancel);
    REQUIRE(stopped.stopped);
    return read_bytes(iql::checkpoint_path(out));
  };
  const auto resume = [&](const fs::path& out) { train_quietly(folder / "data", out, config, true); };
  const auto finish = [&](const fs::path& out, const std::string& last_good) {
    CHECK(read_bytes(iql::checkpoint_path(out)) == last_good);
    for (const auto& entry : fs::recursive_directory_iterator(out))
      CHECK(entry.path().extension() != ".part");
    resume(out);
    check_same_run(folder / "whole", out);
  };
  const std::string last_good = begin(folder / "limited");
  {
    const SmallFiles small(last_good.size() / 2);
    expect_error(ErrorCode::kFileWrite, "state.safetensors", [&] { resume(folder / "limited"); });
  }
  finish(folder / "limited", last_good);

  const SmallDisk disk(folder / "disk");
  MESSAGE("a disk of its own: ",
          std::string(disk.is_mounted() ? "yes" : "no, not permitted; the limit on files stands for it"));
  if (!disk.is_mounted()) return;
  const fs::path out = folder / "disk" / "model";
  const std::string saved = begin(out);
  disk.fill();
  expect_error(ErrorCode::kFileWrite, out.string(), [&] { resume(out); });
  fs::remove(folder / "disk" / "filler");
  finish(out, saved);
}

}  // namespace
}  // namespace boq::test
