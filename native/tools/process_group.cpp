#include "native/tools/process_group.h"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#ifdef BOQ_WITH_NCCL
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "native/core/error.h"

namespace boq::tools {
namespace {

using Bytes = std::vector<uint8_t>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

std::string environment(const char* name, const std::string& fallback = "") {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : value;
}

int64_t number_of(const char* name, int64_t low, int64_t high) {
  const std::string text = environment(name);
  char* end = nullptr;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  BOQ_CHECK(!text.empty() && *end == '\0' && value >= low && value <= high, ErrorCode::kConfigInvalid,
            "training with several processes needs ", name, " from ", low, " to ", high, ", got '", text,
            "'; start them with torchrun --no-python, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  return value;
}

StorePtr meet(int rank, int size) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(number_of("MASTER_PORT", 1, 65535));
  options.numWorkers = static_cast<size_t>(size);
  options.timeout = std::chrono::minutes(10);
  // torchrun's agent hosts the store itself; then every process is a client.
  options.isServer = rank == 0 && environment("TORCHELASTIC_USE_AGENT_STORE") != "True";
  const auto store = c10::make_intrusive<c10d::TCPStore>(environment("MASTER_ADDR", "127.0.0.1"), options);
  // A group that was restarted must not read what its predecessor left.
  return c10::make_intrusive<c10d::PrefixStore>("boq/" + environment("TORCHELASTIC_RESTART_COUNT", "0"),
                                                store);
}

// Averages through the store. Each process owns one part of the values: it receives the others' contributions
// to it, adds them up in the order of ranks, and hands out the mean, so that all processes hold the same
// bits.
class StoreCollective : public iql::Collective {
 public:
  StoreCollective(StorePtr store, int rank, int size) : store_(std::move(store)), rank_(rank), size_(size) {}

  // The store may live in rank 0's process: it leaves last.
  ~StoreCollective() override {
    try {
      store_->set("left/" + std::to_string(rank_), Bytes{1});
      if (rank_ != 0) return;
      for (int r = 0; r < size_; ++r) store_->wait({"left/" + std::to_string(r)}, std::chrono::seconds(30));
    } catch (const std::exception&) {  // the others are gone already
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void average(at::Tensor values) override {
    ++round_;
    const at::Tensor plain = values.to(at::kCPU, at::kFloat).contiguous().clone();
    float* data = plain.mutable_data_ptr<float>();
    const int64_t n = plain.numel();
    const auto first_of = [&](int64_t part) { return n * part / size_; };
    for (int r = 0; r < size_; ++r)
      if (r != rank_) send(key("part", rank_, r), data + first_of(r), first_of(r + 1) - first_of(r));
    const int64_t mine = first_of(rank_), count = first_of(rank_ + 1) - mine;
    std::vector<float> sum(static_cast<size_t>(count)), theirs(static_cast<size_t>(count));
    for (int r = 0; r < size_; ++r) {
      const float* part = data + mine;
      if (r != rank_) {
        receive(key("part", r, rank_), theirs.data(), count);
        part = theirs.data();
      }
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    for (float& value : sum) value /= static_cast<float>(size_);
    std::copy(sum.begin(), sum.end(), data + mine);
    send(key("mean", rank_, 0), sum.data(), count);
    for (int r = 0; r < size_; ++r)
      if (r != rank_) receive(key("mean", r, 0), data + first_of(r), first_of(r + 1) - first_of(r));
    forget();
    values.copy_(plain.view(values.sizes()));
  }

 private:
  static constexpr int64_t kPiece = 1 << 20;  // floats of one message: the store takes no more than 8 MiB

  std::string key(const char* what, int from, int to) const {
    return std::string(what) + "/" + std::to_string(round_) + "/" + std::to_string(from) + "/" +
           std::to_string(to);
  }

  void send(const std::string& name, const float* data, int64_t count) {
    for (int64_t i = 0; i * kPiece < count; ++i) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(data + i * kPiece);
      const auto size = static_cast<size_t>(std::min(kPiece, count - i * kPiece)) * sizeof(float);
      const std::string piece = name + "/" + std::to_string(i);
      store_->set(piece, Bytes(bytes, bytes + size));
      sent_.emplace_back(round_, piece);
    }
  }

  void receive(const std::string& name, float* data, int64_t count) {
    for (int64_t i = 0; i * kPiece < count; ++i) {
      const Bytes bytes = store_->get(name + "/" + std::to_string(i));
      const auto expected = static_cast<size_t>(std::min(kPiece, count - i * kPiece)) * sizeof(float);
      BOQ_CHECK(bytes.size() == expected, ErrorCode::kConfigInvalid,
                "the processes disagree about what they train; start all with the same arguments");
      std::memcpy(data + i * kPiece, bytes.data(), bytes.size());
    }
  }

  // Whoever takes part in this round has read all of the one before.
  void forget() {
    const auto stale = [&](const auto& entry) { return entry.first < round_; };
    for (const auto& entry : sent_)
      if (stale(entry)) store_->deleteKey(entry.second);
    sent_.erase(std::remove_if(sent_.begin(), sent_.end(), stale), sent_.end());
  }

  StorePtr store_;
  int rank_, size_;
  int64_t round_ = 0;
  std::vector<std::pair<int64_t, std::string>> sent_;
};

#ifdef BOQ_WITH_NCCL
void check_nccl(ncclResult_t result, const char* what) {
  BOQ_CHECK(result == ncclSuccess, ErrorCode::kDeviceLost, "NCCL: ", what, ": ", ncclGetErrorString(result));
}

// NCCL itself rather than c10d's group: its calls go onto the current stream, where a graph can capture them.
class NcclCollective : public iql::Collective {
 public:
  NcclCollective(StorePtr store, int rank, int size, at::Device device)
      : store_(std::move(store)), rank_(rank), size_(size) {
    const c10::cuda::CUDAGuard guard(device);
    ncclUniqueId id;
    if (rank == 0) {
      check_nccl(ncclGetUniqueId(&id), "making a group");
      const auto* bytes = reinterpret_cast<const uint8_t*>(&id);
      store_->set("nccl", Bytes(bytes, bytes + sizeof id));
    } else {
      const Bytes bytes = store_->get("nccl");
      std::memcpy(&id, bytes.data(), std::min(sizeof id, bytes.size()));
    }
    check_nccl(ncclCommInitRank(&group_, size, id, rank), "joining the group");
  }
  ~NcclCollective() override { ncclCommDestroy(group_); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void average(at::Tensor values) override {
    const ncclDataType_t type = values.scalar_type() == at::kBFloat16 ? ncclBfloat16 : ncclFloat;
    check_nccl(ncclAllReduce(values.data_ptr(), values.data_ptr(), static_cast<size_t>(values.numel()), type,
                             ncclAvg, group_, c10::cuda::getCurrentCUDAStream()),
               "averaging");
  }

 private:
  StorePtr store_;
  int rank_, size_;
  ncclComm_t group_ = nullptr;
};
#endif

}  // namespace

std::string device_of_process(const std::string& device) {
  const std::string local = environment("LOCAL_RANK");
  return device == "cuda" && !local.empty() ? "cuda:" + local : device;
}

std::unique_ptr<iql::Collective> join_processes(const std::string& device) {
  if (environment("WORLD_SIZE").empty() || environment("WORLD_SIZE") == "1") return nullptr;
  const int size = static_cast<int>(number_of("WORLD_SIZE", 1, 1024));
  const int rank = static_cast<int>(number_of("RANK", 0, size - 1));
  if (device == "cpu") return std::make_unique<StoreCollective>(meet(rank, size), rank, size);
#ifdef BOQ_WITH_NCCL
  return std::make_unique<NcclCollective>(meet(rank, size), rank, size,
                                          at::Device(device_of_process(device)));
#else
  fail(ErrorCode::kConfigInvalid, "this trainer has no transport for ", device,
       "; build it with CUDA and NCCL's header, or train on one device");
#endif
}

}  // namespace boq::tools
