// The hand-written parts against their definitions: gradients against autograd, Adam against its formula,
// parameter counts against the paper, target copies, isolation of the two losses.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "doctest/doctest.h"
#include "native/iql/iql.h"
#include "native/iql/kernels.h"
#include "native/iql/losses.h"
#include "native/iql/random.h"

namespace boq::iql {
namespace {

at::Tensor noise(at::IntArrayRef shape, uint64_t key) {
  at::Tensor values = at::empty(shape, at::kFloat);
  for (int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<float>()[i] =
        static_cast<float>(2 * draw_unit(key, static_cast<uint64_t>(i)) - 1);
  return values;
}

double relative_error(const at::Tensor& got, const at::Tensor& expected) {
  return ((got - expected).norm() / (expected.norm() + 1e-12)).item<double>();
}

IqlConfig narrow_config() {
  IqlConfig config;
  config.projection = 12;
  config.hidden = {20, 8};
  config.steps = 100;
  config.target_period = 3;
  config.precision = "float32";
  return config;
}

Batch narrow_batch(int64_t width, int64_t n, uint64_t key) {
  Batch batch;
  batch.state = noise({n, width}, key);
  batch.action = noise({n, width}, key + 1);
  batch.task = noise({n, width}, key + 2);
  batch.next_state = noise({n, width}, key + 3);
  batch.reward = noise({1, n}, key + 4).gt(0.5).to(at::kFloat);
  batch.discount = 0.99 * noise({1, n}, key + 5).gt(-0.5).to(at::kFloat);
  return batch;
}

TEST_CASE("networks: the parameter counts of the paper's description") {
  IqlConfig config;
  CHECK(q_shape(config, 2048).parameter_count() == 11188225);
  CHECK(v_shape(config, 2048).parameter_count() == 8041473);
  CHECK(q_shape(config, 3584).parameter_count() == 15906817);
  CHECK(v_shape(config, 3584).parameter_count() == 11187201);
  const Network small(q_shape(narrow_config(), 7), 2, at::kCPU, false);
  int64_t counted = 0;
  for (const auto& [name, view] : small.named_views(small.parameters())) counted += view.numel();
  CHECK(counted == 2 * small.shape().parameter_count());
}

TEST_CASE("networks: initialised as torch's Linear, the same for the same seed") {
  Network a({{"state"}, 64, 32, {16}, 1}, 1, at::kCPU, false), b = a;
  a.initialise({7}, 0);
  const at::Tensor first = a.parameters().clone();
  for (const auto& [name, view] : a.named_views(a.parameters())) {
    const double bound = name.starts_with("0.state_proj") ? 1 / 8.0
                         : name.starts_with("0.hidden")   ? std::sqrt(1 / 32.0)
                                                          : 0.25;
    CHECK(view.abs().max().item<double>() <= bound);
    if (view.numel() > 100)
      CHECK(view.std().item<double>() == doctest::Approx(bound / std::sqrt(3)).epsilon(0.1));
  }
  a.initialise({7}, 0);
  CHECK(at::equal(first, a.parameters()));
  a.initialise({8}, 0);
  CHECK_FALSE(at::equal(first, a.parameters()));
}

TEST_CASE("networks: the written backward pass is autograd's, with dropout, heads and accumulation") {
  const double rate = 0.3;
  Network network({{"state", "action", "task"}, 9, 12, {20, 8}, 5}, 2, at::kCPU, false);
  network.initialise({1}, 0);
  const std::vector<at::Tensor> inputs = {noise({16, 9}, 2), noise({16, 9}, 3), noise({16, 9}, 4)};
  const at::Tensor grad = noise({2, 16, 5}, 5);
  Tape tape;
  const at::Tensor out = network.forward(inputs, {rate, {99}}, tape);
  network.backward(tape, grad);
  const at::Tensor once = network.gradients().clone();

  at::Tensor leaf = network.parameters().detach().clone().requires_grad_(true);
  {
    const c10::AutoGradMode on(true);
    const auto views = network.named_views(leaf);
    std::vector<at::Tensor> outputs;
    for (size_t k = 0; k < 2; ++k) {
      const auto* at_head = &views[k * views.size() / 2];
      const auto linear = [&](const at::Tensor& x, size_t i) {
        return at::addmm(at_head[2 * i + 1].second, x, at_head[2 * i].second.t());
      };
      at::Tensor h = at::cat({linear(inputs[0], 0), linear(inputs[1], 1), linear(inputs[2], 2)}, 1);
      for (size_t i = 0; i < 2; ++i) {
        // What was kept is read off the tape: dropout's own randomness is tested below.
        const at::Tensor kept =
            tape.activations[i + 1][static_cast<int64_t>(k)].gt(0).to(at::kFloat) / (1 - rate);
        h = linear(h, i + 3).relu() * kept;
      }
      outputs.push_back(linear(h, 5));
    }
    const at::Tensor expected = at::stack(outputs);
    CHECK(relative_error(out, expected.detach()) < 1e-6);
    (expected * grad).sum().backward();
  }
  CHECK(relative_error(once, leaf.grad()) < 1e-6);
  network.backward(tape, grad, /*accumulate=*/true);
  CHECK(relative_error(network.gradients(), 2 * leaf.grad()) < 1e-6);
}

TEST_CASE("networks: dropout keeps its share, rescales, and is a function of its key") {
  at::Tensor a = at::ones({1, 200, 500}, at::kFloat), b = a.clone(), c = a.clone();
  const at::Tensor bias = at::zeros({1, 500}, at::kFloat);
  bias_relu_dropout_(a, bias, {0.1, {5}});
  bias_relu_dropout_(b, bias, {0.1, {5}});
  bias_relu_dropout_(c, bias, {0.1, {6}});
  CHECK(at::equal(a, b));
  CHECK_FALSE(at::equal(a, c));
  CHECK(a.gt(0).to(at::kFloat).mean().item<double>() == doctest::Approx(0.9).epsilon(0.005));
  CHECK(a.max().item<double>() == doctest::Approx(1 / 0.9));
  // Neither rows nor columns share their fate, and two keys are independent.
  CHECK(a.gt(0).to(at::kFloat).mean(1).std().item<double>() < 0.05);
  CHECK(a.gt(0).eq(c.gt(0)).to(at::kFloat).mean().item<double>() == doctest::Approx(0.82).epsilon(0.01));
}

TEST_CASE("networks: folding the projections changes rounding only, until the parameters change") {
  Network network({{"state", "action"}, 9, 12, {20, 8}, 1}, 2, at::kCPU, false);
  network.initialise({1}, 0);
  const std::vector<at::Tensor> inputs = {noise({16, 9}, 2), noise({16, 9}, 3)};
  const at::Tensor plain = network.forward(inputs);
  network.fold();
  const at::Tensor folded = network.forward(inputs);
  CHECK(relative_error(folded, plain) < 1e-6);
  network.parameters().mul_(0.5);
  network.parameters_changed();
  CHECK(relative_error(network.forward(inputs), folded) > 0.1);
}

TEST_CASE("networks: bfloat16 products stay close to float32") {
  NetworkShape shape{{"state", "action"}, 256, 512, {512, 64}, 1};
  Network exact(shape, 1, at::kCPU, false), quick(shape, 1, at::kCPU, true);
  exact.initialise({3}, 0);
  quick.initialise({3}, 0);
  const std::vector<at::Tensor> inputs = {noise({32, 256}, 1), noise({32, 256}, 2)};
  Tape tape_exact, tape_quick;
  const at::Tensor expected = exact.forward(inputs, {}, tape_exact),
                   got = quick.forward(inputs, {}, tape_quick);
  CHECK(relative_error(got, expected) < 0.02);
  const at::Tensor grad = at::ones({1, 32, 1}, at::kFloat);
  exact.backward(tape_exact, grad);
  quick.backward(tape_quick, grad);
  CHECK(relative_error(quick.gradients(), exact.gradients()) < 0.03);
}

TEST_CASE("losses: gradients are autograd's") {
  const at::Tensor y = noise({1, 32}, 1).abs(), q0 = noise({3, 32}, 2);
  const at::Tensor weight = noise({3, 32}, 3).gt(-0.3).to(at::kFloat) / 20;
  const auto check = [&](const at::Tensor& at_point, auto&& loss) {
    at::Tensor leaf = at_point.clone().requires_grad_(true);
    const c10::AutoGradMode on(true);
    const Loss result = loss(leaf);
    result.value.sum().backward();
    CHECK(relative_error(result.grad.detach(), leaf.grad()) < 1e-5);
  };
  check(q0.narrow(0, 0, 1), [&](const at::Tensor& v) { return expectile_loss(y, v, 0.8); });
  check(q0, [&](const at::Tensor& q) { return squared_loss(q, y); });
  check(q0, [&](const at::Tensor& q) { return squared_loss(q, y, weight); });
  check(q0, [&](const at::Tensor& q) { return binary_loss(q, y, weight); });
  check(noise({3, 32, 11}, 4), [&](const at::Tensor& logits) { return histogram_loss(logits, y, weight); });
  check(q0, [&](const at::Tensor& better) { return ranking_loss(better, y.expand_as(better)); });
  const at::Tensor group = at::arange(32, at::kLong).floor_divide(4),
                   chosen = at::arange(8, at::kLong) * 4 + 1;
  check(q0, [&](const at::Tensor& q) { return conservative_loss(q, group, chosen); });
}

TEST_CASE("losses: values by hand") {
  const at::Tensor q = at::tensor({1.0f, 0.0f}).unsqueeze(0), v = at::tensor({0.5f, 0.5f}).unsqueeze(0);
  CHECK(expectile_loss(q, v, 0.8).value.item<double>() == doctest::Approx((0.8 * 0.25 + 0.2 * 0.25) / 2));
  CHECK(squared_loss(q, v).value.item<double>() == doctest::Approx(0.25));
  CHECK(binary_loss(at::zeros({1, 2}), q).value.item<double>() == doctest::Approx(std::log(2)));
  // The mean of a histogram is the value it was made of.
  const at::Tensor y = at::tensor({0.0f, 0.37f, 1.0f}).unsqueeze(0);
  const at::Tensor mean = at::matmul(histogram_of(y, 51), bin_centers(51, at::kCPU));
  CHECK((mean - y).abs().max().item<double>() < 1e-3);
  CHECK(conservative_loss(at::zeros({1, 6}), at::arange(6, at::kLong).floor_divide(3),
                          at::tensor(std::vector<int64_t>{0, 4}))
            .value.item<double>() == doctest::Approx(std::log(3)));
}

TEST_CASE("optimizer: coupled decay, clipping and cosine are the formulas") {
  IqlConfig config = narrow_config();
  config.steps = 20;
  config.weight_decay = 0.1;
  config.gradient_clip = 0.5;
  for (const bool decoupled : {false, true}) {
    config.optimizer = decoupled ? "adamw" : "adam";
    Network network({{"state"}, 1, 1, {}, 1}, 1, at::kCPU, false);
    network.initialise({1}, 0);
    Adam adam({config}, network);
    const int64_t n = network.parameters().numel();
    std::vector<double> p, m(static_cast<size_t>(n)), s(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) p.push_back(network.parameters().const_data_ptr<float>()[i]);
    for (int step = 0; step < 20; ++step) {
      const double rate = learning_rate_at(config, step, 20);
      const at::Tensor gradient = noise({1, n}, static_cast<uint64_t>(100 + step));
      network.gradients().copy_(gradient);
      const at::Tensor norm = row_norms(network.gradients());
      const double scale = std::max(1.0, (norm.item<double>() + 1e-6) / config.gradient_clip);
      adam.step(network, norm);
      for (size_t i = 0; i < p.size(); ++i) {
        double g = gradient.const_data_ptr<float>()[i] / scale;
        if (decoupled)
          p[i] *= 1 - rate * config.weight_decay;
        else
          g += config.weight_decay * p[i];
        m[i] = config.beta1 * m[i] + (1 - config.beta1) * g;
        s[i] = config.beta2 * s[i] + (1 - config.beta2) * g * g;
        const double first = m[i] / (1 - std::pow(config.beta1, step + 1));
        const double second = s[i] / (1 - std::pow(config.beta2, step + 1));
        p[i] -= rate * first / (std::sqrt(second) + config.epsilon);
      }
    }
    for (size_t i = 0; i < p.size(); ++i)
      CHECK(network.parameters().const_data_ptr<float>()[i] == doctest::Approx(p[i]).epsilon(1e-5));
  }
  CHECK(learning_rate_at(config, 0, 20) == config.learning_rate);
  CHECK(learning_rate_at(config, 10, 20) == doctest::Approx(config.learning_rate / 2));
  CHECK(learning_rate_at(config, 20, 20) == doctest::Approx(0));
  config.schedule = "constant";
  CHECK(learning_rate_at(config, 19, 20) == config.learning_rate);
}

TEST_CASE("IQL: the target is an exact copy every period, and nothing else in between") {
  Iql learner(narrow_config(), 6, at::kCPU);
  CHECK(at::equal(learner.target().parameters(), learner.q().parameters()));
  for (int step = 1; step <= 7; ++step) {
    const at::Tensor before = learner.target().parameters().clone();
    learner.step(narrow_batch(6, 8, static_cast<uint64_t>(step) * 10));
    if (step % 3 == 0)
      CHECK(at::equal(learner.target().parameters(), learner.q().parameters()));
    else
      CHECK(at::equal(learner.target().parameters(), before));
  }
  IqlConfig averaged = narrow_config();
  averaged.polyak = 0.25;
  Iql other(averaged, 6, at::kCPU);
  const at::Tensor before = other.target().parameters().clone();
  other.step(narrow_batch(6, 8, 1));
  CHECK(relative_error(other.target().parameters(), 0.75 * before + 0.25 * other.q().parameters()) < 1e-6);
}

TEST_CASE("IQL: neither loss moves the other network") {
  Iql a(narrow_config(), 6, at::kCPU), b(narrow_config(), 6, at::kCPU);
  const Batch batch = narrow_batch(6, 8, 1);
  Batch other = batch;
  other.reward = 1 - batch.reward;
  a.step(batch);
  b.step(other);
  CHECK(at::equal(a.v().parameters(), b.v().parameters()));  // L_Q differs, V does not
  CHECK_FALSE(at::equal(a.q().parameters(), b.q().parameters()));

  IqlConfig steep = narrow_config();
  steep.tau = 0.99;
  Iql c(narrow_config(), 6, at::kCPU), d(steep, 6, at::kCPU);
  Batch last = batch;  // without a bootstrap Q's target does not depend on V
  last.discount = at::zeros_like(batch.discount);
  c.step(last);
  d.step(last);
  CHECK(at::equal(c.q().parameters(), d.q().parameters()));  // L_V differs, Q does not
  CHECK_FALSE(at::equal(c.v().parameters(), d.v().parameters()));
}

TEST_CASE("IQL: Q's target uses V as it is after V's update") {
  IqlConfig config = narrow_config();
  config.dropout = 0;
  Iql learner(config, 6, at::kCPU);
  const Batch batch = narrow_batch(6, 8, 1);
  const at::Tensor q = learner.q_values(batch.state, batch.action, batch.task);
  const StepReport report = learner.step(batch);
  const at::Tensor y = batch.reward + batch.discount * learner.v_values(batch.next_state, batch.task);
  CHECK(report.loss_q == doctest::Approx((y - q).square().mean().item<double>()).epsilon(1e-6));
}

TEST_CASE("IQL: a loss that is not finite changes nothing") {
  Iql learner(narrow_config(), 6, at::kCPU);
  const at::Tensor q = learner.q().parameters().clone(), v = learner.v().parameters().clone();
  Batch batch = narrow_batch(6, 8, 1);
  batch.state[3][2] = NAN;
  CHECK_THROWS_WITH_AS(learner.step(batch), doctest::Contains("finite"), Error);
  CHECK(at::equal(q, learner.q().parameters()));
  CHECK(at::equal(v, learner.v().parameters()));
}

}  // namespace
}  // namespace boq::iql
