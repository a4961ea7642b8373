#include "native/core/json.h"

#include "doctest/doctest.h"
#include "native/test/expect_error.h"
#include "native/test/temporary_folder.h"

using boq::ErrorCode;
using boq::JsonView;
using boq::test::expect_error;

TEST_CASE("json: typed reads give the value or name the place") {
  const auto document = boq::parse_json(
      R"({"depth": 32, "eps": 1e-6, "tie": true, "name": "x", "list": [1, 2], "inner": {"k": null}})",
      "c.json");
  const JsonView view(document, "c.json");
  CHECK(view.at("depth").as_int(1, 100) == 32);
  CHECK(view.at("eps").as_double() == doctest::Approx(1e-6));
  CHECK(view.at("tie").as_bool());
  CHECK(view.at("name").as_string() == "x");
  CHECK(view.at("list").as_ints() == std::vector<int64_t>{1, 2});
  CHECK(view.int_or("absent", 7) == 7);
  CHECK(view.at("inner").int_or("k", 7) == 7);

  expect_error(ErrorCode::kConfigInvalid, "c.json: the key 'absent' is missing", [&] { view.at("absent"); });
  expect_error(ErrorCode::kConfigInvalid, "c.json: depth: expected an integer in [1, 16], found 32",
               [&] { view.at("depth").as_int(1, 16); });
  expect_error(ErrorCode::kConfigInvalid, "c.json: eps: expected an integer",
               [&] { view.at("eps").as_int(); });
  expect_error(ErrorCode::kConfigInvalid, "c.json: inner.k: expected true or false",
               [&] { view.at("inner").at("k").as_bool(); });
  expect_error(ErrorCode::kConfigInvalid, "c.json: list: element 2 is missing", [&] {
    view.at("list");
    view.at("list").at(2);
  });
  expect_error(ErrorCode::kConfigInvalid, "found array of 2", [&] { view.at("list").as_string(); });
}

TEST_CASE("json: integers beyond 64 bits are refused, not wrapped") {
  const auto document = boq::parse_json(R"({"a": 18446744073709551615, "c": -1})", "c.json");
  const JsonView view(document, "c.json");
  expect_error(ErrorCode::kConfigInvalid, "c.json: a", [&] { view.at("a").as_int(); });
  expect_error(ErrorCode::kConfigInvalid, "c.json: c", [&] { view.at("c").as_int(0); });
  expect_error(ErrorCode::kConfigInvalid, "1e400", [] { boq::parse_json("[1e400]", "c.json"); });
}

TEST_CASE("json: broken and hostile documents are refused") {
  const auto refuse = [](const std::string& text, const std::string& message) {
    expect_error(ErrorCode::kFileCorrupt, message, [&] {
      boq::parse_json(text, "x.json", ErrorCode::kFileCorrupt, {1000, 8});
    });
  };
  refuse("", "x.json: not valid JSON");
  refuse("{\"a\": 1", "x.json: not valid JSON");
  refuse("{\"a\": 1} trailing", "x.json: not valid JSON");
  refuse("{\"a\": 1, \"a\": 2}", "occurs twice");
  refuse("{\"a\": \"\xff\xfe\"}", "x.json: not valid JSON");
  refuse(std::string(500, '['), "nested deeper than 8");
  refuse(std::string(1001, ' '), "the limit is 1000");
}

TEST_CASE("json: a missing file and a folder are told apart from bad content") {
  const boq::test::TemporaryFolder folder;
  expect_error(ErrorCode::kFileNotFound, "absent.json", [&] { boq::read_json_file(folder / "absent.json"); });
  expect_error(ErrorCode::kFileNotFound, folder.path().string(), [&] { boq::read_json_file(folder.path()); });
  const auto path = folder.write("c.json", "[1, 2]");
  CHECK(boq::read_json_file(path).size() == 2);
}
