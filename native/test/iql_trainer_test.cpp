// A run as a whole: what it writes, what it reads back, how it ends, what it refuses.
#include "native/iql/trainer.h"

#include <ATen/ATen.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "doctest/doctest.h"
#include "native/core/safetensors.h"
#include "native/iql/checkpoint.h"
#include "native/iql/config.h"
#include "native/iql/split.h"
#include "native/iql/transitions.h"
#include "native/test/expect_error.h"
#include "native/test/iql_fixture.h"
#include "native/test/temporary_folder.h"

namespace boq::test {
namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Json run_config(int64_t steps) {
  Json config = small_config(steps);
  config.update({{"dropout", 0.1},
                 {"standardise", true},
                 {"validationFraction", 0.2},
                 {"heads", 2},
                 {"checkpointEvery", 10}});
  return config;
}

void flip_byte(const fs::path& path, int64_t from_end) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(-from_end, std::ios::end);
  const char byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(-from_end, std::ios::end);
  file.put(byte);
}

TEST_CASE("IQL training: leaves a model, its settings and its history") {
  const TemporaryFolder folder;
  const World world = random_world(60, 8, 1);
  write_world(folder / "data", world);
  int reports = 0;
  iql::TrainRequest request{{folder / "data"}, folder / "model", "cpu", run_config(40), false};
  const auto summary = iql::train(
      request,
      [&](const iql::TrainProgress& progress) {
        ++reports;
        CHECK(progress.steps == 40);
        CHECK(progress.metrics.count("loss/q") == 1);
      },
      CancelFlag());
  CHECK(reports >= 1);
  CHECK(summary.steps == 40);
  CHECK_FALSE(summary.stopped);
  CHECK(summary.metrics.count("validation/q_auc") == 1);
  const Json config = Json::parse(slurp(folder / "model" / "config.json"));
  CHECK(config["fingerprint"] == "test");
  CHECK(config["steps"] == 40);
  CHECK(config["config"]["targetPeriod"] == 20);
  CHECK(config["parameters"]["q"] == summary.q_parameters);
  CHECK(config["split"]["validationEpisodes"] == 12);
  std::istringstream lines(slurp(folder / "model" / "metrics.jsonl"));
  int64_t last = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json entry = Json::parse(line);
    CHECK(entry["step"].get<int64_t>() == last + 1);
    last = entry["step"];
    for (const char* name : {"loss/v", "loss/q", "value/v_mean", "value/q_mean", "value/adv_mean",
                             "grad/v_norm", "grad/q_norm", "lr"})
      CHECK(entry.contains(name));
  }
  CHECK(last == 40);
  const auto model = SafetensorsFile::open(folder / "model" / "model.safetensors");
  for (const char* name : {"q.0.state_proj.weight", "q.1.hidden.1.bias", "v.task_proj.weight", "v.out.bias",
                           "target.1.action_proj.bias", "norm.action.mean"})
    CHECK(model.contains(name));
  CHECK_FALSE(model.contains("v.action_proj.weight"));
  CHECK_FALSE(fs::exists(folder / "model" / "checkpoint"));
}

TEST_CASE("IQL training: the same seed gives the same bytes, another seed others") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(40, 8, 2));
  Json config = run_config(25);
  train_quietly(folder / "data", folder / "a", config);
  train_quietly(folder / "data", folder / "b", config);
  CHECK(slurp(folder / "a" / "model.safetensors") == slurp(folder / "b" / "model.safetensors"));
  CHECK(slurp(folder / "a" / "metrics.jsonl") == slurp(folder / "b" / "metrics.jsonl"));
  config["seed"] = 1;
  train_quietly(folder / "data", folder / "c", config);
  CHECK(slurp(folder / "a" / "model.safetensors") != slurp(folder / "c" / "model.safetensors"));
}

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
  CHECK(slurp(folder / "whole" / "model.safetensors") == slurp(folder / "parts" / "model.safetensors"));
  CHECK(slurp(folder / "whole" / "metrics.jsonl") == slurp(folder / "parts" / "metrics.jsonl"));
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
  CHECK(slurp(folder / "whole" / "model.safetensors") == slurp(folder / "killed" / "model.safetensors"));
  CHECK(slurp(folder / "whole" / "metrics.jsonl") == slurp(folder / "killed" / "metrics.jsonl"));
}

TEST_CASE("worker: trains until killed" * doctest::skip()) {
  train_quietly(std::getenv("BOQ_TEST_WORKER_DATA"), std::getenv("BOQ_TEST_WORKER_OUT"),
                Json::parse(std::getenv("BOQ_TEST_WORKER_CONFIG")), /*resume=*/true);
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

TEST_CASE("IQL training: data that cannot be trained on is named") {
  const TemporaryFolder folder;
  World world = random_world(30, 8, 6);
  write_world(folder / "good", world);
  const Json config = run_config(5);
  Json strict = config;
  strict["allowSingleOutcome"] = false;
  const auto train_on = [&](const char* name, const Json& with) {
    train_quietly(folder / name, folder / "model", with);
  };

  World failures = world;
  for (auto& episode : failures.episodes) episode.reward = 0;
  write_world(folder / "failures", failures);
  expect_error(ErrorCode::kDataInvalid, "none of the", [&] { train_on("failures", strict); });
  CHECK_NOTHROW(train_on("failures", config));
  for (auto& episode : failures.episodes) episode.reward = 1;
  write_world(folder / "successes", failures);
  expect_error(ErrorCode::kDataInvalid, "all of the", [&] { train_on("successes", strict); });

  World empty = world;
  empty.episodes.clear();
  write_world(folder / "empty", empty);
  expect_error(ErrorCode::kDataEmpty, "collect", [&] { train_on("empty", config); });
  expect_error(ErrorCode::kFileNotFound, "manifest.json", [&] { train_on("nothing", config); });

  World other = world;
  other.fingerprint = "another";
  write_world(folder / "other", other);
  iql::TrainRequest request{{folder / "good", folder / "other"}, folder / "model", "cpu", config, false};
  expect_error(ErrorCode::kFingerprintMismatch, "another",
               [&] { iql::train(request, nullptr, CancelFlag()); });
  write_world(folder / "wide", random_world(30, 9, 6));
  request.data[1] = folder / "wide";
  expect_error(ErrorCode::kShapeMismatch, "width 8", [&] { iql::train(request, nullptr, CancelFlag()); });

  World beyond = world;
  beyond.episodes[0].moves[0].action = 99;
  beyond.episodes[0].moves[0].candidates = {99};
  write_world(folder / "beyond", beyond);
  expect_error(ErrorCode::kDataInvalid, "action", [&] { train_on("beyond", config); });
}

TEST_CASE("IQL training: values that are not finite stop the run, the last good checkpoint stays") {
  const TemporaryFolder folder;
  World world = random_world(40, 8, 7);
  write_world(folder / "good", world);
  world.states[17][3] = INFINITY;
  write_world(folder / "bad", world);
  Json config = run_config(200);
  config["standardise"] = false;
  config["checkpointEvery"] = 1;
  expect_error(ErrorCode::kNotFinite, "checkpoint",
               [&] { train_quietly(folder / "bad", folder / "model", config); });
  const fs::path path = iql::checkpoint_path(folder / "model");
  if (fs::exists(path)) CHECK_NOTHROW(train_quietly(folder / "good", folder / "model", config, true));
  config["standardise"] = true;
  expect_error(ErrorCode::kNotFinite, "dimension 3",
               [&] { train_quietly(folder / "bad", folder / "model", config); });
}

TEST_CASE("IQL training: a folder that cannot be written is named") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(20, 8, 8));
  folder.write("file", "not a folder");
  expect_error(ErrorCode::kFileWrite, "file",
               [&] { train_quietly(folder / "data", folder / "file", run_config(5)); });
  if (fs::exists("/dev/full")) {
    fs::create_directories(folder / "full");
    fs::create_symlink("/dev/full", folder / "full" / "metrics.jsonl.part");
    expect_error(ErrorCode::kFileWrite, "metrics.jsonl",
                 [&] { train_quietly(folder / "data", folder / "full", run_config(5)); });
  }
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
    return slurp(iql::checkpoint_path(out));
  };
  const auto resume = [&](const fs::path& out) { train_quietly(folder / "data", out, config, true); };
  const auto finish = [&](const fs::path& out, const std::string& last_good) {
    CHECK(slurp(iql::checkpoint_path(out)) == last_good);
    for (const auto& entry : fs::recursive_directory_iterator(out))
      CHECK(entry.path().extension() != ".part");
    resume(out);
    CHECK(slurp(folder / "whole" / "model.safetensors") == slurp(out / "model.safetensors"));
    CHECK(slurp(folder / "whole" / "metrics.jsonl") == slurp(out / "metrics.jsonl"));
  };
  const std::string last_good = begin(folder / "limited");
  {
    const SmallFiles small(last_good.size() / 2);
    expect_error(ErrorCode::kFileWrite, "state.safetensors", [&] { resume(folder / "limited"); });
  }
  finish(folder / "limited", last_good);

  const SmallDisk disk(folder / "disk");
  MESSAGE("a disk of its own: ",
          disk.is_mounted() ? "yes" : "no, not permitted; the limit on files stands for it");
  if (!disk.is_mounted()) return;
  const fs::path out = folder / "disk" / "model";
  const std::string saved = begin(out);
  disk.fill();
  expect_error(ErrorCode::kFileWrite, out.string(), [&] { resume(out); });
  fs::remove(folder / "disk" / "filler");
  finish(out, saved);
}

TEST_CASE("IQL data: several runs are one set, whatever their shards") {
  const TemporaryFolder folder;
  World first = random_world(20, 8, 9), second = random_world(30, 8, 10);
  second.rows_per_shard = 7;
  write_world(folder / "first", first);
  write_world(folder / "second", second);
  const auto data = iql::Transitions::load({folder / "first", folder / "second"});
  CHECK(data.size() == 150);
  CHECK(data.episodes() == 50);
  CHECK(data.task_names.size() == 2);
  const std::vector<int64_t> rows = {0, 59, 60, 66, 67, 149, -1};
  const at::Tensor got = data.states.gather(rows, {}, at::kFloat);
  CHECK(at::equal(got[1], first.states[59]));
  CHECK(at::equal(got[2], second.states[0]));
  CHECK(at::equal(got[4], second.states[7]));
  CHECK(at::equal(got[5], second.states[89]));
  CHECK(got[6].abs().sum().item<double>() == 0);

  const auto split = iql::split_of(data, 0.2);
  const auto norm = iql::standardisers_for(data, split.training, 6);
  std::vector<int64_t> training_rows;
  for (const int64_t t : split.training) training_rows.push_back(data.state[static_cast<size_t>(t)]);
  const at::Tensor standard = data.states.gather(training_rows, norm.state, at::kFloat);
  CHECK(standard.mean(0).abs().max().item<double>() < 1e-5);
  CHECK((standard.std(0, false) - 1).abs().max().item<double>() < 1e-4);
  CHECK(at::allclose(standard, norm.state.apply(data.states.gather(training_rows, {}, at::kFloat))));
}

TEST_CASE("IQL data: the shuffled control keeps the number of successes and breaks the link") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(200, 8, 11));
  auto data = iql::Transitions::load({folder / "data"});
  const auto before = data.episode_success;
  iql::shuffle_outcomes(data, 0.2, 1);
  int64_t successes_before = 0, successes_after = 0, moved = 0;
  for (size_t e = 0; e < before.size(); ++e) {
    successes_before += before[e];
    successes_after += data.episode_success[e];
    moved += before[e] != data.episode_success[e];
    if (data.episode_split[e] < 0.2) CHECK(before[e] == data.episode_success[e]);
    const auto last = static_cast<size_t>(data.episode_first[e] + data.episode_steps[e] - 1);
    CHECK(data.reward[last] == static_cast<float>(data.episode_success[e]));
  }
  CHECK(successes_before == successes_after);
  CHECK(moved > 40);
}

TEST_CASE("IQL scorer: values depend on the row alone, whatever else is in the batch") {
  const TemporaryFolder folder;
  const World world = random_world(40, 8, 12);
  write_world(folder / "data", world);
  train_quietly(folder / "data", folder / "model", run_config(30));
  const auto scorer = iql::Scorer::load(folder / "model", "cpu");
  CHECK(scorer->width() == 8);
  CHECK(scorer->heads() == 2);
  CHECK(scorer->fingerprint() == "test");

  const at::Tensor owner = at::arange(64, at::kInt).remainder(10);
  const at::Tensor actions = world.actions.index_select(0, at::arange(64).remainder(8));
  const auto all = scorer->score(
      {world.states.narrow(0, 0, 10), world.tasks.narrow(0, 0, 1).expand({10, 8}), actions, owner});
  CHECK(all.spread.min().item<double>() > 0);
  for (const int64_t i : {0, 9, 40, 63}) {
    const int64_t state = owner[i].item<int64_t>();
    const auto one = scorer->score({world.states.narrow(0, state, 1), world.tasks.narrow(0, 0, 1),
                                    actions.narrow(0, i, 1), at::zeros({1}, at::kInt)});
    CHECK(std::abs(one.q.item<double>() - all.q[i].item<double>()) < 1e-6);
    CHECK(std::abs(one.v.item<double>() - all.v[state].item<double>()) < 1e-6);
  }
  CHECK(all.q[0].item<double>() == doctest::Approx(all.q[40].item<double>()).epsilon(1e-6));

  const auto bad = [&](const at::Tensor& states, const at::Tensor& owners) {
    scorer->score({states, world.tasks.narrow(0, 0, 1), actions, owners});
  };
  expect_error(ErrorCode::kShapeMismatch, "width 8", [&] { bad(at::zeros({1, 9}), owner); });
  expect_error(ErrorCode::kInvalidArgument, "owner", [&] { bad(at::zeros({1, 8}), owner); });
  expect_error(ErrorCode::kNotFinite, "finite", [&] {
    bad(at::full({1, 8}, NAN), at::zeros({64}, at::kInt));
  });
  expect_error(ErrorCode::kFileNotFound, "config.json", [&] { iql::Scorer::load(folder / "none", "cpu"); });
}

}  // namespace
}  // namespace boq::test
