#include "native/iql/packed.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <utility>

#include "native/core/simd.h"

namespace boq::iql {
namespace {

constexpr int64_t kPadding = 32;            // a row's length is a multiple: two of the widest registers
constexpr int64_t kIntegersFrom = 1 << 17;  // weights of a matrix
constexpr int64_t kBlock = 32;              // rows of a matrix that one task multiplies
constexpr int64_t kSerial = 1 << 20;        // weights below which waking a thread costs more than it does
constexpr int64_t kAhead = 12 << 10;        // bytes: how far before their use weights are asked for

// One row of weights times R rows of x. Each row's sum runs in the same order for every R.
template <class V, int R, class T>
BOQ_INLINE void multiply_rows(const T* w, float scale, const float* x, int64_t n, float* y,
                              int64_t y_stride) {
  constexpr int64_t kLanes = V::kLanes;
  static_assert(kPadding % (2 * kLanes) == 0);
  typename V::Floats sums[R][2] = {};
  for (int64_t i = 0; i < n; i += 2 * kLanes) {
    // The processor's own prefetching stops at every 4 KB, a row of the usual width. Beyond the matrix this
    // is ignored.
    __builtin_prefetch(reinterpret_cast<const char*>(w + i) + kAhead);
    const auto low = V::load(w + i), high = V::load(w + i + kLanes);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      sums[r][0] += low * V::load(x + r * n + i);
      sums[r][1] += high * V::load(x + r * n + i + kLanes);
    }
  }
  for (int r = 0; r < R; ++r) y[r * y_stride] = scale * V::sum(sums[r][0] + sums[r][1]);
}

template <class V, class T>
BOQ_INLINE void multiply_block(const T* w, const float* scale, int64_t outs, const float* x, int64_t rows,
                               int64_t n, float* y, int64_t y_stride) {
  for (int64_t o = 0; o < outs; ++o, w += n) {
    const float s = scale == nullptr ? 1 : scale[o];
    const auto at = [&](int64_t r) { return y + r * y_stride + o; };
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) multiply_rows<V, 4>(w, s, x + r * n, n, at(r), y_stride);
    if (r + 3 == rows) multiply_rows<V, 3>(w, s, x + r * n, n, at(r), y_stride);
    if (r + 2 == rows) multiply_rows<V, 2>(w, s, x + r * n, n, at(r), y_stride);
    if (r + 1 == rows) multiply_rows<V, 1>(w, s, x + r * n, n, at(r), y_stride);
  }
}

BOQ_PER_CPU(void block(const int16_t* w, const float* scale, int64_t outs, const float* x, int64_t rows,
                       int64_t n, float* y, int64_t y_stride),
            multiply_block<V>(w, scale, outs, x, rows, n, y, y_stride))
BOQ_PER_CPU(void block(const float* w, const float* scale, int64_t outs, const float* x, int64_t rows,
                       int64_t n, float* y, int64_t y_stride),
            multiply_block<V>(w, scale, outs, x, rows, n, y, y_stride))

int64_t padded(int64_t n) { return (n + kPadding - 1) / kPadding * kPadding; }

at::Tensor padded_rows(const at::Tensor& rows) {
  const int64_t in = rows.size(1), stride = padded(in);
  if (in == stride) return rows.contiguous();
  at::Tensor wide = at::zeros({rows.size(0), stride}, rows.options());
  wide.narrow(1, 0, in).copy_(rows);
  return wide;
}

// A copy in memory of large pages: a decision reads all weights once, and looking up thousands of small
// pages slows that down.
at::Tensor on_large_pages(const at::Tensor& values) {
  constexpr size_t kPage = size_t{2} << 20;
  const size_t bytes = (values.nbytes() + kPage - 1) / kPage * kPage;
  void* memory = std::aligned_alloc(kPage, bytes);
  if (memory == nullptr) return values.clone();
#ifdef __linux__
  madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: where it is refused the pages are small
#endif
  at::Tensor copy = at::from_blob(
      memory, values.sizes(), [](void* p) { std::free(p); }, values.options());
  return copy.copy_(values);
}

// x [rows, stride], zero beyond `out`: relu(x + bias).
void activate(float* x, const float* bias, int64_t rows, int64_t out, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r, x += stride)
    for (int64_t o = 0; o < out; ++o) {
      const float z = x[o] + bias[o];
      x[o] = z < 0 ? 0 : z;  // a NaN passes, and is found in the values
    }
}

}  // namespace

PackedMatrix::PackedMatrix(const at::Tensor& weight) : out(weight.size(0)), stride(padded(weight.size(1))) {
  if (weight.numel() < kIntegersFrom) {
    values = padded_rows(weight).clone();
    return;
  }
  scale = weight.abs().amax(1).div(32767).clamp_min(1e-30);
  values = on_large_pages(padded_rows((weight / scale.unsqueeze(1)).round().to(at::kShort)));
}

void multiply(const std::vector<PackedProduct>& products) {
  std::vector<int64_t> first = {0};  // number of each product's first task
  int64_t weights = 0;
  for (const PackedProduct& p : products) {
    first.push_back(first.back() + (p.matrix->out + kBlock - 1) / kBlock);
    weights += p.matrix->out * p.matrix->stride;
  }
  const int64_t tasks = first.back();
  at::parallel_for(0, tasks, weights < kSerial ? tasks : 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const auto i =
          static_cast<size_t>(std::upper_bound(first.begin(), first.end(), task) - first.begin() - 1);
      const PackedProduct& p = products[i];
      const PackedMatrix& m = *p.matrix;
      const int64_t from = (task - first[i]) * kBlock, outs = std::min(kBlock, m.out - from);
      if (m.scale.defined())
        block(m.values.const_data_ptr<int16_t>() + from * m.stride, m.scale.const_data_ptr<float>() + from,
              outs, p.x, p.rows, m.stride, p.y + from, p.y_stride);
      else
        block(m.values.const_data_ptr<float>() + from * m.stride, nullptr, outs, p.x, p.rows, m.stride,
              p.y + from, p.y_stride);
    }
  });
}

// What the first layer makes of the latest tasks, by content.
class PackedNetwork::TaskMemory {
 public:
  /// [K, n, hidden] where all rows are known; undefined otherwise.
  at::Tensor recall(const at::Tensor& rows) {
    const std::lock_guard lock(mutex_);
    std::vector<at::Tensor> found;
    for (int64_t i = 0; i < rows.size(0); ++i) {
      const auto entry = find(rows[i]);
      if (entry == entries_.end()) return {};
      entries_.splice(entries_.begin(), entries_, entry);
      found.push_back(entry->second);
    }
    return at::stack(found, 1);
  }

  void keep(const at::Tensor& rows, const at::Tensor& results) {
    const std::lock_guard lock(mutex_);
    for (int64_t i = 0; i < rows.size(0); ++i)
      if (find(rows[i]) == entries_.end())
        entries_.emplace_front(rows[i].clone(), results.select(1, i).clone());
    while (entries_.size() > kTasks) entries_.pop_back();
  }

 private:
  static constexpr size_t kTasks = 64;
  using Entries = std::list<std::pair<at::Tensor, at::Tensor>>;  // latest first

  Entries::iterator find(const at::Tensor& row) {
    return std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
      return std::memcmp(entry.first.const_data_ptr(), row.const_data_ptr(),
                         static_cast<size_t>(row.nbytes())) == 0;
    });
  }

  std::mutex mutex_;
  Entries entries_;
};

PackedNetwork::PackedNetwork() = default;
PackedNetwork::PackedNetwork(PackedNetwork&&) noexcept = default;
PackedNetwork& PackedNetwork::operator=(PackedNetwork&&) noexcept = default;
PackedNetwork::~PackedNetwork() = default;

PackedNetwork::PackedNetwork(Network network)
    : heads_(network.heads()),
      streams_(static_cast<int64_t>(network.shape().streams.size())),
      tasks_(std::make_unique<TaskMemory>()) {
  const auto& streams = network.shape().streams;
  const auto task = std::find(streams.begin(), streams.end(), "task");
  if (task != streams.end()) task_stream_ = task - streams.begin();
  network.fold();
  PackedLayer first{{}, network.folded_bias().clone()};
  for (int64_t k = 0; k < heads_; ++k)
    for (const at::Tensor& part : network.folded_weight()[k].split(network.shape().width, 1))
      first.weights.emplace_back(part.contiguous());
  layers_.push_back(std::move(first));
  for (size_t i = static_cast<size_t>(streams_) + 1; i < network.layers().size(); ++i) {
    const Layer& layer = network.layers()[i];
    PackedLayer packed{{}, network.bias(network.parameters(), layer).clone()};
    for (int64_t k = 0; k < heads_; ++k)
      packed.weights.emplace_back(network.weight(network.parameters(), layer)[k]);
    layers_.push_back(std::move(packed));
  }
}

at::Tensor PackedNetwork::forward(const std::vector<at::Tensor>& inputs,
                                  const std::vector<std::vector<int64_t>>& rows) const {
  const auto n = static_cast<int64_t>(rows[0].size());
  std::vector<at::Tensor> wide, parts;  // parts[k * streams + s]: [n_s, hidden]
  std::vector<PackedProduct> products;
  for (const at::Tensor& input : inputs) wide.push_back(padded_rows(input));
  const int64_t hidden = layers_[0].bias.size(1);
  const at::Tensor task = task_stream_ < 0 ? at::Tensor() : wide[static_cast<size_t>(task_stream_)];
  const at::Tensor known = task.defined() ? tasks_->recall(task) : at::Tensor();
  for (int64_t i = 0; i < heads_ * streams_; ++i) {
    if (known.defined() && i % streams_ == task_stream_) {
      parts.push_back(known[i / streams_]);
      continue;
    }
    const at::Tensor& x = wide[static_cast<size_t>(i % streams_)];
    parts.push_back(at::empty({x.size(0), hidden}, at::kFloat));
    products.push_back({&layers_[0].weights[static_cast<size_t>(i)], x.const_data_ptr<float>(),
                        parts.back().mutable_data_ptr<float>(), x.size(0), hidden});
  }
  multiply(products);
  if (task.defined() && !known.defined()) {
    std::vector<at::Tensor> results;
    for (int64_t k = 0; k < heads_; ++k)
      results.push_back(parts[static_cast<size_t>(k * streams_ + task_stream_)]);
    tasks_->keep(task, at::stack(results));
  }

  at::Tensor h = at::zeros({heads_, n, padded(hidden)}, at::kFloat);
  for (int64_t k = 0; k < heads_; ++k) {
    float* to = h.mutable_data_ptr<float>() + k * n * h.size(2);
    for (int64_t s = 0; s < streams_; ++s) {
      const float* from = parts[static_cast<size_t>(k * streams_ + s)].const_data_ptr<float>();
      for (int64_t j = 0; j < n; ++j) {
        const float* row = from + rows[static_cast<size_t>(s)][static_cast<size_t>(j)] * hidden;
        for (int64_t o = 0; o < hidden; ++o) to[j * h.size(2) + o] += row[o];
      }
    }
  }
  for (size_t i = 0; i + 1 < layers_.size(); ++i) {
    const PackedLayer& next = layers_[i + 1];
    const int64_t in = layers_[i].bias.size(1), out = next.bias.size(1), stride = h.size(2);
    at::Tensor y = at::zeros({heads_, n, padded(out)}, at::kFloat);
    products.clear();
    for (int64_t k = 0; k < heads_; ++k) {
      float* x = h.mutable_data_ptr<float>() + k * n * stride;
      activate(x, layers_[i].bias[k].const_data_ptr<float>(), n, in, stride);
      products.push_back({&next.weights[static_cast<size_t>(k)], x,
                          y.mutable_data_ptr<float>() + k * n * y.size(2), n, y.size(2)});
    }
    multiply(products);
    h = y;
  }
  return h.narrow(2, 0, layers_.back().bias.size(1)) + layers_.back().bias.unsqueeze(1);
}

}  // namespace boq::iql
