// boq_train as a program: arguments, exit codes, interruption, several models, several processes.
#include <ATen/ATen.h>
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>

#include "doctest/doctest.h"
#include "native/core/safetensors.h"
#include "native/iql/checkpoint.h"
#include "native/test/iql_fixture.h"
#include "native/test/temporary_folder.h"

namespace boq::test {
namespace {

namespace fs = std::filesystem;

/// A running boq_train; its output goes to files.
class Program {
 public:
  Program(const fs::path& log, std::vector<std::string> arguments,
          const std::map<std::string, std::string>& environment = {})
      : log_(log) {
    arguments.insert(arguments.begin(), BOQ_TRAIN_PROGRAM);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    process_ = ::fork();
    REQUIRE(process_ >= 0);
    if (process_ != 0) return;
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"})
      ::unsetenv(name);
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    if (std::freopen((log_.string() + ".out").c_str(), "w", stdout) == nullptr ||
        std::freopen((log_.string() + ".err").c_str(), "w", stderr) == nullptr)
      ::_exit(126);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (process_ > 0) ::kill(process_, SIGKILL);
    wait();
  }

  void interrupt() const { ::kill(process_, SIGINT); }
  bool is_running() {
    if (process_ > 0 && ::waitpid(process_, &status_, WNOHANG) == process_) process_ = 0;
    return process_ > 0;
  }
  /// Its exit code.
  int wait() {
    if (process_ > 0) ::waitpid(process_, &status_, 0);
    process_ = 0;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }
  std::string out() const { return read_bytes(log_.string() + ".out"); }
  std::string err() const { return read_bytes(log_.string() + ".err"); }

 private:
  fs::path log_;
  pid_t process_ = 0;
  int status_ = 0;
};

std::vector<std::string> arguments_for(const TemporaryFolder& folder, const std::string& out,
                                       const Json& config) {
  std::vector<std::string> arguments = {"--data", folder / "data", "--out", folder / out, "--threads", "1"};
  for (const auto& [key, value] : config.items())
    arguments.push_back(key + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
  return arguments;
}

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A port that nobody listens on just now.
std::string free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(socket);
  return std::to_string(ntohs(address.sin_port));
}

TEST_CASE("boq_train: trains, says so in JSON, and refuses what it does not understand") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(40, 8, 1));
  const Json config = small_config(20);
  Program good(folder / "good", arguments_for(folder, "model", config));
  CHECK(good.wait() == 0);
  const Json summary = Json::parse(good.out());
  CHECK(summary["steps"] == 20);
  CHECK(summary["stopped"] == false);
  CHECK(summary["models"].size() == 1);
  CHECK(good.err().find("step 20 of 20") != std::string::npos);
  train_quietly(folder / "data", folder / "called", config);
  CHECK(read_bytes(folder / "model" / "model.safetensors") ==
        read_bytes(folder / "called" / "model.safetensors"));

  const auto refuse = [&](const std::vector<std::string>& arguments, int code, const char* part,
                          const std::map<std::string, std::string>& environment = {}) {
    Program program(folder / "refused", arguments, environment);
    CHECK(program.wait() == code);
    CHECK_MESSAGE(program.err().find(part) != std::string::npos, program.err());
  };
  const auto plain = arguments_for(folder, "refused", config);
  refuse({"--out", "x"}, 2, "usage:");
  refuse(plain + std::vector<std::string>{"--frobnicate"}, 2, "--frobnicate");
  refuse(plain + std::vector<std::string>{"--sweep", "tau"}, 2, "--sweep");
  refuse(plain + std::vector<std::string>{"taus=1"}, 1, "BOQ_CONFIG_INVALID");
  refuse({"--data", folder / "none", "--out", folder / "x"}, 1, "BOQ_FILE_NOT_FOUND");
  refuse(plain, 1, "RANK", {{"WORLD_SIZE", "2"}});
  refuse(plain, 1, "RANK", {{"WORLD_SIZE", "2"}, {"RANK", "2"}});
  refuse(plain, 1, "MASTER_PORT", {{"WORLD_SIZE", "2"}, {"RANK", "1"}, {"MASTER_PORT", "many"}});
}

TEST_CASE("boq_train: several models, each in its folder") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(40, 8, 2));
  const std::vector<std::string> many = {"--seeds",         "2", "--sweep", "hidden=[16,8],[24]", "--sweep",
                                         "qTarget=td,sarsa"};
  Program program(folder / "many", arguments_for(folder, "models", small_config(10)) + many);
  CHECK(program.wait() == 0);
  CHECK(Json::parse(program.out())["models"].size() == 8);
  for (const char* name : {"hidden-16x8-qTarget-td-seed-0", "hidden-24-qTarget-sarsa-seed-1"})
    CHECK(fs::exists(folder / "models" / name / "config.json"));
}

TEST_CASE("boq_train: interrupted, it saves; resumed, it ends as if nothing had been") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(40, 8, 3));
  Json config = small_config(3000);
  config.update({{"dropout", 0.1}, {"checkpointEvery", 5}});
  train_quietly(folder / "data", folder / "whole", config);
  const auto arguments = arguments_for(folder, "parts", config);
  Program first(folder / "first", arguments);
  while (first.is_running() && !fs::exists(iql::checkpoint_path(folder / "parts"))) ::usleep(1000);
  first.interrupt();
  CHECK(first.wait() == 130);
  CHECK(Json::parse(first.out())["stopped"] == true);
  CHECK(fs::exists(iql::checkpoint_path(folder / "parts")));
  Program second(folder / "second", arguments + std::vector<std::string>{"--resume"});
  CHECK(second.wait() == 0);
  check_same_run(folder / "whole", folder / "parts");
}

TEST_CASE("boq_train: two processes that share every batch are one process") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(60, 8, 4));
  Json config = small_config(20);
  config.update({{"batchSize", 128},
                 {"dropout", 0.1},
                 {"heads", 2},
                 {"headShare", 0.7},
                 {"conservative", 0.1},
                 {"ranking", 0.1},
                 {"gradientClip", 0.5},
                 {"standardise", true},
                 {"checkpointEvery", 7}});
  train_quietly(folder / "data", folder / "one", config);
  const std::string port = free_port();
  const auto start = [&](const char* rank, const Json& with) {
    return std::make_unique<Program>(
        folder / ("rank-" + std::string(rank)), arguments_for(folder, "two", with),
        std::map<std::string, std::string>{
            {"RANK", rank}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}});
  };
  const auto first = start("0", config), second = start("1", config);
  CHECK_MESSAGE(first->wait() == 0, first->err());
  CHECK_MESSAGE(second->wait() == 0, second->err());
  CHECK(Json::parse(first->out())["steps"] == 20);
  CHECK(second->out().empty());

  const auto one = SafetensorsFile::open(folder / "one" / "model.safetensors"),
             two = SafetensorsFile::open(folder / "two" / "model.safetensors");
  double difference = 0, size = 0;
  for (const auto& name : one.names()) {
    difference += (one.tensor(name) - two.tensor(name)).square().sum().item<double>();
    size += one.tensor(name).square().sum().item<double>();
  }
  CHECK(std::sqrt(difference / size) < 1e-4);
  std::istringstream a(read_bytes(folder / "one" / "metrics.jsonl")),
      b(read_bytes(folder / "two" / "metrics.jsonl"));
  int lines = 0;
  for (std::string left, right; std::getline(a, left) && std::getline(b, right); ++lines) {
    const Json expected = Json::parse(left), got = Json::parse(right);
    for (const auto& [name, value] : expected.items())
      CHECK(got[name].get<double>() == doctest::Approx(value.get<double>()).epsilon(1e-3));
  }
  CHECK(lines == 20);
}

TEST_CASE("boq_train: a batch that cannot be shared equally is refused by every process") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(20, 8, 5));
  Json config = small_config(5);
  config["batchSize"] = 63;
  const std::string port = free_port();
  std::vector<std::unique_ptr<Program>> processes;
  for (const char* rank : {"0", "1"})
    processes.push_back(std::make_unique<Program>(
        folder / rank, arguments_for(folder, "model", config),
        std::map<std::string, std::string>{{"RANK", rank}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", port}}));
  for (const auto& process : processes) {
    CHECK(process->wait() == 1);
    CHECK(process->err().find("batchSize") != std::string::npos);
  }
}

}  // namespace
}  // namespace boq::test
