#include "native/iql/row_store.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "native/core/error.h"
#include "native/core/safetensors.h"
#include "native/iql/kernels.h"

namespace boq::iql {

namespace fs = std::filesystem;

void RowStore::add(const fs::path& folder, const JsonView& stream, int64_t rows_per_shard, int64_t width) {
  width_ = width;
  const int64_t rows = stream.at("rows").as_int(0);
  const JsonView names = stream.at("shards");
  int64_t seen = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const fs::path path = folder / names.at(i).as_string();
    const auto file = SafetensorsFile::open(path);
    const at::Tensor tensor = file.tensor("rows");
    const auto dtype = tensor.scalar_type();
    BOQ_CHECK(dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf,
              ErrorCode::kDtypeUnsupported, path.string(),
              ": expected float32, bfloat16 or float16 vectors, got ", dtype);
    BOQ_CHECK(tensor.dim() == 2 && tensor.size(1) == width, ErrorCode::kShapeMismatch, path.string(),
              ": expected rows of width ", width, ", got a tensor of shape ", tensor.sizes());
    BOQ_CHECK(i + 1 == names.size() || tensor.size(0) == rows_per_shard, ErrorCode::kDataInvalid,
              path.string(), ": expected ", rows_per_shard, " rows, got ", tensor.size(0));
    shards_.push_back({size_ + seen, tensor});
    seen += tensor.size(0);
  }
  if (seen != rows)
    stream.reject("expected ", rows, " rows in the shards, got ", seen, "; embed the run again");
  size_ += rows;
}

const void* RowStore::row(int64_t id, at::ScalarType* dtype) const {
  const auto after = std::upper_bound(shards_.begin(), shards_.end(), id,
                                      [](int64_t value, const Shard& shard) { return value < shard.first; });
  const Shard& shard = *(after - 1);
  *dtype = shard.rows.scalar_type();
  return static_cast<const char*>(shard.rows.const_data_ptr()) +
         (id - shard.first) * width_ * static_cast<int64_t>(shard.rows.element_size());
}

at::Tensor RowStore::gather(std::span<const int64_t> ids, const Standardiser& standardiser,
                            at::ScalarType dtype) const {
  const auto count = static_cast<int64_t>(ids.size());
  at::Tensor out = at::empty({count, width_}, dtype);
  auto* to = static_cast<char*>(out.mutable_data_ptr());
  const int64_t stride = width_ * static_cast<int64_t>(out.element_size());
  RowScaling scaling;
  if (!standardiser.is_identity())
    scaling = {standardiser.mean.const_data_ptr<float>(), standardiser.std.const_data_ptr<float>(),
               static_cast<float>(standardiser.clip)};
  at::parallel_for(0, count, std::max<int64_t>(1, (1 << 17) / width_), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (ids[static_cast<size_t>(i)] < 0) {
        std::fill(to + i * stride, to + (i + 1) * stride, 0);
        continue;
      }
      at::ScalarType from;
      const void* source = row(ids[static_cast<size_t>(i)], &from);
      copy_row(source, from, to + i * stride, dtype, width_, scaling);
    }
  });
  return out;
}

Standardiser RowStore::statistics(const std::vector<int64_t>& weight, double clip) const {
  Moments moments(width_);
  for (int64_t id = 0; id < size_; ++id) {
    const int64_t times = weight[static_cast<size_t>(id)];
    if (times == 0) continue;
    at::ScalarType dtype;
    const void* source = row(id, &dtype);
    moments.add(source, dtype, times);
  }
  return moments.standardiser(clip);
}

}  // namespace boq::iql
