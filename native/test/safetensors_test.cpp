#include "native/core/safetensors.h"

#include <ATen/ATen.h>

#include "doctest/doctest.h"
#include "native/test/expect_error.h"
#include "native/test/temporary_folder.h"

using boq::ErrorCode;
using boq::SafetensorsFile;
using boq::SafetensorsFolder;
using boq::test::expect_error;
using boq::test::read_bytes;
using boq::test::TemporaryFolder;

namespace {

/// Header and data as the format lays them out, without any check.
std::string file_bytes(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + data;
}

void refuse(const std::string& header, const std::string& data, const std::string& message,
            ErrorCode code = ErrorCode::kFileCorrupt) {
  const TemporaryFolder folder;
  const auto path = folder.write("bad.safetensors", file_bytes(header, data));
  expect_error(code, message, [&] { SafetensorsFile::open(path); });
}

}  // namespace

TEST_CASE("safetensors: what is written is read back, for every type") {
  const TemporaryFolder folder;
  const auto path = folder / "all.safetensors";
  boq::NamedTensors tensors;
  for (const auto type : {at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf, at::kBFloat16,
                          at::kFloat, at::kDouble, at::kBool}) {
    tensors.emplace_back(c10::toString(type), at::arange(6, at::kFloat).to(type).view({2, 3}));
  }
  tensors.emplace_back("scalar", at::scalar_tensor(2.5));
  tensors.emplace_back("empty", at::empty({0, 4}));
  tensors.emplace_back("strided", at::arange(6, at::kFloat).view({2, 3}).t());
  boq::write_safetensors(path, tensors, {{"format", "pt"}, {"note", "äöü"}});

  const auto file = SafetensorsFile::open(path);
  CHECK(file.metadata().at("note") == "äöü");
  CHECK(file.tensors().size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    CHECK((file.info(name).dtype == tensor.scalar_type()));
    CHECK(at::equal(file.tensor(name), tensor));
  }
  expect_error(ErrorCode::kWeightsMissing, "holds no tensor 'absent'", [&] { file.tensor("absent"); });
}

TEST_CASE("safetensors: a tensor outlives its file object and the file's name") {
  at::Tensor view;
  {
    const TemporaryFolder folder;
    boq::write_safetensors(folder / "a.safetensors", {{"x", at::arange(5000, at::kFloat)}});
    const auto file = SafetensorsFile::open(folder / "a.safetensors");
    view = file.tensor("x");
    file.release("x");
  }
  CHECK(at::equal(view, at::arange(5000, at::kFloat)));
}

TEST_CASE("safetensors: writing to a view does not change the file") {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  boq::write_safetensors(path, {{"x", at::ones({8})}});
  SafetensorsFile::open(path).tensor("x").zero_();
  CHECK(at::equal(SafetensorsFile::open(path).tensor("x"), at::ones({8})));
}

TEST_CASE("safetensors: a misaligned tensor is copied") {
  const TemporaryFolder folder;
  // A header of odd length: the floats start at an odd address.
  std::string header = R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  if (header.size() % 2 == 0) header += ' ';
  const float values[2] = {1.5f, -2.0f};
  const auto path = folder.write("odd.safetensors",
                                 file_bytes(header, std::string(reinterpret_cast<const char*>(values), 8)));
  const auto x = SafetensorsFile::open(path).tensor("x");
  CHECK(reinterpret_cast<uintptr_t>(x.data_ptr()) % 4 == 0);
  CHECK(x[0].item<float>() == 1.5f);
  CHECK(x[1].item<float>() == -2.0f);
}

TEST_CASE("safetensors: hostile headers are refused with the reason") {
  const std::string four(4, 'x'), eight(8, 'x');
  refuse("[1]", "", "does not start with '{'");
  refuse("{\"x\":", "", "not valid JSON");
  refuse(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", eight,
         "was cut or is still being written");
  refuse(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", four,
         "was cut or is still being written");
  refuse(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight, "(hole)");
  refuse(
      R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"y":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
      eight, "(overlap)");
  refuse(
      R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      eight, "occurs twice");
  refuse(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", four, "shape and type need 8 bytes");
  refuse(R"({"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", four, "shape[0]");
  refuse(R"({"x":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0]}})", "",
         "overflows");
  refuse(R"({"x":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", "", "overflows");
  refuse(R"({"x":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", four, "expected an integer");
  refuse(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", four, "[begin, end]");
  refuse(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", four, "[begin, end]");
  refuse(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}})", four,
         "data_offsets[1]");
  refuse(R"({"x":{"dtype":"F32","shape":[1]}})", four, "nothing else");
  refuse(R"({"x":17})", four, "nothing else");
  refuse(R"({"__metadata__":{"a":1}})", "", "expected a string");
  refuse(R"({"x":{"dtype":"F4","shape":[1],"data_offsets":[0,4]}})", four, "'F4' is not supported",
         ErrorCode::kDtypeUnsupported);
}

TEST_CASE("safetensors: files that are no safetensors are refused") {
  const TemporaryFolder folder;
  const auto open = [](const std::filesystem::path& path) { return [path] { SafetensorsFile::open(path); }; };
  expect_error(ErrorCode::kFileNotFound, "absent", open(folder / "absent.safetensors"));
  expect_error(ErrorCode::kFileNotFound, "not a regular file", open(folder.path()));
  expect_error(ErrorCode::kFileCorrupt, "too few", open(folder.write("empty", "")));
  expect_error(ErrorCode::kFileCorrupt, "a header of", open(folder.write("huge", std::string(8, '\xff'))));
  expect_error(ErrorCode::kFileCorrupt, "a header of",
               open(folder.write("cut", std::string("\x40\0\0\0\0\0\0\0{", 9))));
}

TEST_CASE("safetensors: a failed write leaves nothing behind and the old file whole") {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  boq::write_safetensors(path, {{"x", at::ones({8})}});
  const auto before = read_bytes(path);
  expect_error(ErrorCode::kInvalidArgument, "given twice", [&] {
    boq::write_safetensors(path, {{"x", at::ones({1})}, {"x", at::ones({1})}});
  });
  expect_error(ErrorCode::kInvalidArgument, "reserved", [&] {
    boq::write_safetensors(path, {{"__metadata__", at::ones({1})}});
  });
  expect_error(ErrorCode::kDtypeUnsupported, "cannot be stored", [&] {
    boq::write_safetensors(path, {{"x", at::ones({1}, at::kComplexFloat)}});
  });
  expect_error(ErrorCode::kInvalidArgument, "UTF-8", [&] {
    boq::write_safetensors(path, {{"\xff", at::ones({1})}});
  });
  std::filesystem::create_directory(folder / "taken");
  expect_error(ErrorCode::kFileWrite, "put in place", [&] {
    boq::write_safetensors(folder / "taken", {{"x", at::ones({1})}});
  });
  expect_error(ErrorCode::kFileWrite, "cannot be created", [&] {
    boq::write_safetensors(folder / "no" / "such.safetensors", {{"x", at::ones({1})}});
  });
  CHECK(read_bytes(path) == before);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("safetensors: a folder joins its shards and trusts only the index") {
  const TemporaryFolder folder;
  boq::write_safetensors(folder / "part-1.safetensors", {{"a", at::ones({2})}});
  boq::write_safetensors(folder / "part-2.safetensors", {{"b", at::zeros({3})}});
  const auto with_index = [&](const std::string& map) {
    folder.write("model.safetensors.index.json",
                 "{\"metadata\":{\"total_size\":20},\"weight_map\":" + map + "}");
    return [&folder] { SafetensorsFolder::open(folder.path()); };
  };
  with_index(R"({"a":"part-1.safetensors","b":"part-2.safetensors"})")();
  const auto all = SafetensorsFolder::open(folder.path());
  CHECK(all.names() == std::vector<std::string>{"a", "b"});
  CHECK(at::equal(all.tensor("b"), at::zeros({3})));
  expect_error(ErrorCode::kWeightsMissing, "'c'", [&] { all.tensor("c"); });

  expect_error(ErrorCode::kFileCorrupt, "is not in part-2",
               with_index(R"({"a":"part-2.safetensors","b":"part-2.safetensors"})"));
  expect_error(ErrorCode::kFileNotFound, "part-3", with_index(R"({"a":"part-3.safetensors"})"));
  expect_error(ErrorCode::kFileCorrupt, "not the name of a file",
               with_index(R"({"a":"../part-1.safetensors"})"));
  expect_error(ErrorCode::kFileCorrupt, "expected an object", with_index("[]"));
  boq::write_safetensors(folder / "part-1.safetensors", {{"a", at::ones({2})}, {"extra", at::ones({2})}});
  expect_error(ErrorCode::kFileCorrupt, "'extra' is missing from the index",
               with_index(R"({"a":"part-1.safetensors","b":"part-2.safetensors"})"));
  std::filesystem::remove(folder / "model.safetensors.index.json");
  expect_error(ErrorCode::kFileNotFound, "holds neither", [&] { SafetensorsFolder::open(folder.path()); });
  boq::write_safetensors(folder / "model.safetensors", {{"a", at::ones({2})}});
  CHECK(SafetensorsFolder::open(folder.path()).names().size() == 1);
}
