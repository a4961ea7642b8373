#include "doctest/doctest.h"
#include "native/iql/config.h"
#include "native/test/expect_error.h"

namespace boq::iql {
namespace {

TEST_CASE("IQL config: the paper's preset is the paper") {
  const IqlConfig weak = resolve_config({{"preset", "paper"}}, {300000, 0.5});
  CHECK(weak.steps == 50000);
  CHECK(weak.tau == 0.7);
  CHECK(weak.target_period == 100);
  CHECK_FALSE(weak.standardise);
  CHECK(weak.heads == 1);
  CHECK(resolve_config({{"preset", "paper"}}, {300000, 0.82}).tau == 0.8);
}

TEST_CASE("IQL config: the default preset follows the data, and what is given wins") {
  const IqlConfig small = resolve_config(Json::object(), {500, 0.4});
  CHECK(small.steps == 1500);
  CHECK(small.target_period == 10);
  CHECK(small.tau == 0.6);
  CHECK(small.standardise);
  const IqlConfig large = resolve_config(Json::object(), {300000, 0.7});
  CHECK(large.steps == 20 * 2344);
  CHECK(large.target_period == 93);
  CHECK(large.tau == 0.7);
  const IqlConfig chosen =
      resolve_config({{"steps", 30000}, {"tau", nullptr}, {"hidden", {8, 4}}}, {500, 0.4});
  CHECK(chosen.steps == 30000);
  CHECK(chosen.target_period == 60);
  CHECK(chosen.tau == 0.6);
  CHECK(chosen.hidden == std::vector<int64_t>{8, 4});
}

TEST_CASE("IQL config: what was resolved reads back as itself") {
  const IqlConfig config = resolve_config({{"heads", 3}, {"valueLoss", "bce"}, {"gamma", 0.95}}, {9000, 0.4});
  CHECK(config_to_json(resolve_config(config_to_json(config), {1, 1})) == config_to_json(config));
}

TEST_CASE("IQL config: mistakes are named") {
  const auto expect = [](const Json& options, const char* part) {
    test::expect_error(ErrorCode::kConfigInvalid, part, [&] { resolve_config(options, {500, 0.4}); });
  };
  expect({{"batchsize", 64}}, "did you mean 'batchSize'");
  expect({{"learning_rate", 1}}, "did you mean 'learningRate'");
  expect({{"batchSize", "64"}}, "batchSize");
  expect({{"batchSize", 0}}, "batchSize");
  expect({{"gamma", 1.5}}, "gamma");
  expect({{"qTarget", "q-lambda"}}, "monte-carlo");
  expect({{"hidden", Json::array()}}, "hidden");
  expect({{"useState", false}, {"useTask", false}}, "V");
  expect({{"useAction", false}, {"ranking", 1}}, "useAction");
  expect({{"useAction", false}, {"useMatch", true}}, "useAction");
  expect({{"headShare", 0.5}}, "heads");
  expect(Json::array(), "object");
}

}  // namespace
}  // namespace boq::iql
