#include "native/iql/networks.h"

#include <ATen/ATen.h>

#include <cmath>

#include "native/core/error.h"
#include "native/iql/kernels.h"
#include "native/iql/random.h"

namespace boq::iql {
namespace {

constexpr int64_t kAlign = 16;  // floats of a cache line

// Below this many weights a product costs next to nothing, and float32 keeps the values exact: the last
// layers.
constexpr int64_t kHalfFrom = 1 << 17;

int64_t aligned(int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

// a [G, m, n] times b [K, n, p], where G divides K and each group of heads has its a: one 2-D product a head
// on the CPU, where batched ones are slower for strided weights, one batched product elsewhere.
at::Tensor head_products(const at::Tensor& a, const at::Tensor& b) {
  const int64_t heads = b.size(0), shared = heads / a.size(0);
  if (heads == 1) return at::mm(a[0], b[0]).unsqueeze(0);
  if (!a.is_cpu()) return at::bmm(shared == 1 ? a : a.repeat_interleave(shared, 0), b);
  at::Tensor out = at::empty({heads, a.size(1), b.size(2)}, a.options());
  for (int64_t k = 0; k < heads; ++k) {
    at::Tensor slice = out[k];
    at::mm_out(slice, a[k / shared], b[k]);
  }
  return out;
}

at::Tensor with_groups(const at::Tensor& input) { return input.dim() == 2 ? input.unsqueeze(0) : input; }

}  // namespace

int64_t NetworkShape::parameter_count() const {
  int64_t count = static_cast<int64_t>(streams.size()) * (width + 1) * projection;
  int64_t in = static_cast<int64_t>(streams.size()) * projection;
  for (const int64_t out : hidden) {
    count += (in + 1) * out;
    in = out;
  }
  return count + (in + 1) * outputs;
}

Network::Network(NetworkShape shape, int64_t heads, at::Device device, bool half)
    : shape_(std::move(shape)), heads_(heads), half_(half) {
  const auto add = [&](std::string name, int64_t in, int64_t out) {
    const int64_t bias_offset = row_ + aligned(in * out);
    layers_.push_back({std::move(name), in, out, row_, bias_offset});
    row_ = bias_offset + aligned(out);
  };
  for (const auto& stream : shape_.streams) add(stream + "_proj", shape_.width, shape_.projection);
  int64_t in = static_cast<int64_t>(shape_.streams.size()) * shape_.projection;
  for (size_t i = 0; i < shape_.hidden.size(); ++i) {
    add("hidden." + std::to_string(i), in, shape_.hidden[i]);
    in = shape_.hidden[i];
  }
  add("out", in, shape_.outputs);
  parameters_ = at::zeros({heads_, row_}, at::TensorOptions(at::kFloat).device(device));
  gradients_ = at::zeros_like(parameters_, half_ ? at::kBFloat16 : at::kFloat);
  parameters_changed();
}

void Network::initialise(const std::vector<uint64_t>& seeds, uint64_t id) {
  at::Tensor values = at::zeros({heads_, row_}, at::kFloat);
  float* data = values.mutable_data_ptr<float>();
  const int64_t group = heads_ / static_cast<int64_t>(seeds.size());
  for (int64_t k = 0; k < heads_; ++k) {
    const uint64_t seed = seeds[static_cast<size_t>(k / group)];
    const uint64_t key = draw_key(seed, Draw::kInit, id, static_cast<uint64_t>(k % group));
    const auto fill = [&](int64_t offset, int64_t count, double bound) {
      for (int64_t i = offset; i < offset + count; ++i)
        data[k * row_ + i] = static_cast<float>((2 * draw_unit(key, static_cast<uint64_t>(i)) - 1) * bound);
    };
    for (const Layer& layer : layers_) {
      const double bound = 1 / std::sqrt(static_cast<double>(layer.in));
      fill(layer.weight_offset, layer.in * layer.out, bound);
      fill(layer.bias_offset, layer.out, bound);
    }
  }
  parameters_.copy_(values);
  parameters_changed();
}

at::ScalarType Network::input_dtype() const { return is_half(layers_[0]) ? at::kBFloat16 : at::kFloat; }

void Network::parameters_changed(bool half_is_current) {
  folded_weight_.reset();
  folded_bias_.reset();
  if (!half_ || half_is_current) return;
  if (half_parameters_.defined()) {
    half_parameters_.copy_(parameters_);
  } else {
    half_parameters_ = parameters_.to(at::kBFloat16);
  }
}

// One product a row of the folded matrix saves one of the first hidden layer; making it costs E rows' worth
// of those.
bool Network::is_worth_folding(int64_t rows) const {
  return !shape_.hidden.empty() && rows > 2 * shape_.width;
}

void Network::fold() {
  const auto streams = static_cast<int64_t>(shape_.streams.size());
  const Layer& first = layers_[shape_.streams.size()];
  const bool half = is_half(first) && is_half(layers_[0]);
  const at::Tensor& buffer = half ? half_parameters_ : parameters_;
  const at::Tensor joined = weight(buffer, first);
  at::Tensor folded = at::empty({heads_, first.out, streams * shape_.width}, joined.options());
  at::Tensor shift = bias(parameters_, first).clone();
  for (int64_t i = 0; i < streams; ++i) {
    const Layer& projection = layers_[static_cast<size_t>(i)];
    for (int64_t k = 0; k < heads_; ++k) {
      const at::Tensor part = joined[k].narrow(1, i * shape_.projection, shape_.projection);
      folded[k].narrow(1, i * shape_.width, shape_.width).copy_(at::mm(part, weight(buffer, projection)[k]));
      shift[k].add_(at::mv(part.to(at::kFloat), bias(parameters_, projection)[k]));
    }
  }
  folded_weight_ = folded;
  folded_bias_ = shift;
}

at::Tensor Network::weight(const at::Tensor& buffer, const Layer& layer) const {
  return buffer.narrow(1, layer.weight_offset, layer.in * layer.out).view({heads_, layer.out, layer.in});
}

at::Tensor Network::bias(const at::Tensor& buffer, const Layer& layer) const {
  return buffer.narrow(1, layer.bias_offset, layer.out);
}

bool Network::is_half(const Layer& layer) const { return half_ && layer.in * layer.out >= kHalfFrom; }

at::Tensor Network::product(const at::Tensor& x, const Layer& layer) const {
  const bool half = is_half(layer);
  const at::Tensor weights = weight(half ? half_parameters_ : parameters_, layer);
  return head_products(x.to(half ? at::kBFloat16 : at::kFloat), weights.transpose(1, 2));
}

DropoutMask Network::mask_of(const Dropout& dropout, size_t layer) const {
  DropoutMask mask{dropout.rate, {}, dropout.first_row};
  if (dropout.rate == 0) return mask;
  const int64_t group = heads_ / static_cast<int64_t>(dropout.keys.size());
  for (int64_t k = 0; k < heads_; ++k) {
    const uint64_t key = mix_bits(dropout.keys[static_cast<size_t>(k / group)] + layer);
    mask.keys.push_back(static_cast<uint32_t>(draw_bits(key, static_cast<uint64_t>(k % group))));
  }
  return mask;
}

at::Tensor Network::forward(const std::vector<at::Tensor>& inputs) const {
  if (!folded_weight_.defined()) {
    Tape tape;
    return forward(inputs, {}, tape);
  }
  at::Tensor h = head_products(with_groups(at::cat(inputs, -1).to(folded_weight_.scalar_type())),
                               folded_weight_.transpose(1, 2));
  bias_relu_dropout_(h, folded_bias_);
  for (size_t i = shape_.streams.size() + 1; i + 1 < layers_.size(); ++i) {
    h = product(h, layers_[i]);
    bias_relu_dropout_(h, bias(parameters_, layers_[i]));
  }
  at::Tensor out = product(h, layers_.back()).to(at::kFloat);
  add_bias_(out, bias(parameters_, layers_.back()));
  return out;
}

at::Tensor Network::forward(const std::vector<at::Tensor>& inputs, Dropout dropout, Tape& tape) const {
  BOQ_CHECK(inputs.size() == shape_.streams.size(), ErrorCode::kShapeMismatch, "the network takes ",
            shape_.streams.size(), " inputs, got ", inputs.size());
  tape.inputs.clear();
  tape.activations.clear();
  tape.dropout = dropout.rate;
  std::vector<at::Tensor> projected;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Layer& layer = layers_[i];
    tape.inputs.push_back(with_groups(inputs[i].to(is_half(layer) ? at::kBFloat16 : at::kFloat)));
    at::Tensor h = product(tape.inputs.back(), layer);
    add_bias_(h, bias(parameters_, layer));
    projected.push_back(std::move(h));
  }
  tape.activations.push_back(projected.size() == 1 ? projected[0] : at::cat(projected, 2));
  for (size_t i = inputs.size(); i + 1 < layers_.size(); ++i) {
    at::Tensor h = product(tape.activations.back(), layers_[i]);
    bias_relu_dropout_(h, bias(parameters_, layers_[i]), mask_of(dropout, i));
    tape.activations.push_back(std::move(h));
  }
  at::Tensor out = product(tape.activations.back(), layers_.back()).to(at::kFloat);
  add_bias_(out, bias(parameters_, layers_.back()));
  return out;
}

void Network::backward(const Tape& tape, const at::Tensor& grad, bool accumulate) {
  at::Tensor grad_out = grad;
  const size_t projections = shape_.streams.size();
  for (size_t i = layers_.size(); i-- > projections;) {
    const at::Tensor& x = tape.activations[i - projections];
    at::Tensor grad_x;
    backward_layer(layers_[i], x, grad_out, accumulate, &grad_x);
    if (i > projections) {
      grad_x = grad_x.to(x.scalar_type());
      relu_dropout_backward_(grad_x, x, tape.dropout);
    }
    grad_out = std::move(grad_x);
  }
  for (size_t i = 0; i < projections; ++i) {
    const auto slice = grad_out.narrow(2, static_cast<int64_t>(i) * shape_.projection, shape_.projection);
    backward_layer(layers_[i], tape.inputs[i], slice.contiguous(), accumulate, nullptr);
  }
}

void Network::backward_layer(const Layer& layer, const at::Tensor& x, const at::Tensor& grad, bool accumulate,
                             at::Tensor* grad_x) {
  const auto dtype = is_half(layer) ? at::kBFloat16 : at::kFloat;
  const at::Tensor g = grad.to(dtype), rows = x.to(dtype);
  at::Tensor weights = weight(gradients_, layer);
  for (int64_t k = 0; k < heads_; ++k) {
    at::Tensor to = weights[k];
    const at::Tensor left = g[k].t(), right = rows[k * rows.size(0) / heads_];
    if (accumulate) {
      to.add_(at::mm(left, right));
    } else if (dtype == to.scalar_type()) {
      at::mm_out(to, left, right);
    } else {
      to.copy_(at::mm(left, right));
    }
  }
  sum_to_bias(g, bias(gradients_, layer), accumulate);
  if (grad_x != nullptr)
    *grad_x = head_products(g, weight(is_half(layer) ? half_parameters_ : parameters_, layer));
}

std::vector<std::pair<std::string, at::Tensor>> Network::named_views(const at::Tensor& buffer) const {
  std::vector<std::pair<std::string, at::Tensor>> views;
  for (int64_t k = 0; k < heads_; ++k) {
    for (const Layer& layer : layers_) {
      const std::string name = std::to_string(k) + "." + layer.name;
      views.emplace_back(name + ".weight", weight(buffer, layer)[k]);
      views.emplace_back(name + ".bias", bias(buffer, layer)[k]);
    }
  }
  return views;
}

}  // namespace boq::iql
