// Packed networks beside the networks they were made from.
#include "native/iql/packed.h"

#include <ATen/ATen.h>

#include "doctest/doctest.h"
#include "native/iql/random.h"

namespace boq::iql {
namespace {

constexpr int64_t kWidth = 300;  // no multiple of a vector's length

at::Tensor noise(int64_t rows, uint64_t key) {
  at::Tensor values = at::empty({rows, kWidth}, at::kFloat);
  for (int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<float>()[i] =
        static_cast<float>(2 * draw_unit(key, static_cast<uint64_t>(i)) - 1);
  return values;
}

Network network_of(int64_t heads, int64_t outputs) {
  // The first hidden layer and the one after it are large enough to be held in 16 bits, the last ones are
  // not.
  Network network({{"state", "action", "task"}, kWidth, 64, {512, 300, 20}, outputs}, heads, at::kCPU, false);
  network.initialise({3}, 0);
  return network;
}

TEST_CASE("packed networks: the values of the network, up to 16-bit weights") {
  for (const int64_t outputs : {1, 5}) {
    const Network network = network_of(2, outputs);
    const PackedNetwork packed(network);
    const at::Tensor state = noise(2, 1), action = noise(6, 2), task = noise(1, 3);
    const std::vector<int64_t> owner = {0, 0, 0, 1, 1, 0}, own = {0, 1, 2, 3, 4, 5}, only(6, 0);
    const at::Tensor got = packed.forward({state, action, task}, {owner, own, only});
    const at::Tensor expected = network.forward(
        {state.index_select(0, at::tensor(owner)), action, task.index_select(0, at::tensor(only))});
    CHECK(got.sizes() == expected.sizes());
    CHECK((got - expected).abs().max().item<double>() < 1e-4 * expected.abs().max().item<double>());
    CHECK((got - expected).abs().max().item<double>() > 0);  // else nothing was packed, and nothing tested
  }
}

TEST_CASE("packed networks: a row's value is the same to the bit, whatever else is asked") {
  const PackedNetwork packed(network_of(1, 1));
  const at::Tensor state = noise(3, 1), action = noise(11, 2), task = noise(3, 3);
  std::vector<int64_t> owner, own;
  for (int64_t i = 0; i < 11; ++i) {
    owner.push_back(i % 3);
    own.push_back(i % 10);  // the last candidate equals the first
  }
  owner.back() = 0;
  const at::Tensor all = packed.forward({state, action, task}, {owner, own, owner});
  CHECK(all[0][0].item<float>() == all[0][10].item<float>());
  for (int64_t i = 0; i < 11; ++i) {
    const int64_t s = owner[static_cast<size_t>(i)], a = own[static_cast<size_t>(i)];
    const at::Tensor one = packed.forward(
        {state.narrow(0, s, 1), action.narrow(0, a, 1), task.narrow(0, s, 1)}, {{0}, {0}, {0}});
    CHECK(one.item<float>() == all[0][i].item<float>());
  }
}

TEST_CASE("packed networks: tasks that were met before change nothing, however many") {
  const PackedNetwork packed(network_of(2, 1)), fresh(network_of(2, 1));
  const at::Tensor state = noise(1, 1), action = noise(1, 2), tasks = noise(100, 3);
  const auto value = [&](const PackedNetwork& network, int64_t task) {
    return network.forward({state, action, tasks.narrow(0, task, 1)}, {{0}, {0}, {0}});
  };
  std::vector<at::Tensor> first;
  for (int64_t i = 0; i < 100; ++i) first.push_back(value(packed, i));
  for (const int64_t i : {99, 50, 0, 99, 0})
    CHECK(at::equal(value(packed, i), first[static_cast<size_t>(i)]));
  CHECK(at::equal(value(fresh, 0), first[0]));
  CHECK_FALSE(at::equal(first[0], first[1]));
  // A batch of known and unknown tasks.
  const at::Tensor both = fresh.forward({state, action, tasks.narrow(0, 0, 2)}, {{0, 0}, {0, 0}, {0, 1}});
  CHECK(at::equal(both.select(1, 0), first[0].select(1, 0)));
  CHECK(at::equal(both.select(1, 1), first[1].select(1, 0)));
}

}  // namespace
}  // namespace boq::iql
