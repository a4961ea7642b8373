#include "native/iql/config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <variant>

namespace boq::iql {
namespace {

using Member = std::variant<int64_t IqlConfig::*, double IqlConfig::*, bool IqlConfig::*,
                            std::string IqlConfig::*, std::vector<int64_t> IqlConfig::*>;

struct Field {
  const char* name;
  Member member;
  double low = 0;
  double high = 0;
  std::vector<std::string> choices = {};
};

constexpr double kMost = 1e15;

const std::vector<Field>& fields() {
  using C = IqlConfig;
  static const std::vector<Field> table = {
      {"preset", &C::preset, 0, 0, {"default", "paper"}},
      {"seed", &C::seed, 0, 9007199254740991.0},
      {"steps", &C::steps, 1, 1e9},
      {"batchSize", &C::batch_size, 1, 1 << 20},
      {"gamma", &C::gamma, 0, 1},
      {"tau", &C::tau, 0.001, 0.999},
      {"qTarget", &C::q_target, 0, 0, {"td", "sarsa", "monte-carlo", "outcome"}},
      {"valueLoss", &C::value_loss, 0, 0, {"mse", "bce", "hl-gauss"}},
      {"bins", &C::bins, 5, 1001},
      {"bootstrapTimeouts", &C::bootstrap_timeouts},
      {"conservative", &C::conservative, 0, 1000},
      {"ranking", &C::ranking, 0, 1000},
      {"targetPeriod", &C::target_period, 1, 1e9},
      {"polyak", &C::polyak, 0, 1},
      {"heads", &C::heads, 1, 64},
      {"headAggregate", &C::head_aggregate, 0, 0, {"min", "mean"}},
      {"headShare", &C::head_share, 0.01, 1},
      {"projection", &C::projection, 1, 65536},
      {"hidden", &C::hidden, 1, 65536},
      {"dropout", &C::dropout, 0, 0.95},
      {"useState", &C::use_state},
      {"useAction", &C::use_action},
      {"useTask", &C::use_task},
      {"useMatch", &C::use_match},
      {"learningRate", &C::learning_rate, 0, 1},
      {"schedule", &C::schedule, 0, 0, {"cosine", "constant"}},
      {"optimizer", &C::optimizer, 0, 0, {"adam", "adamw"}},
      {"weightDecay", &C::weight_decay, 0, 1},
      {"beta1", &C::beta1, 0, 0.9999999},
      {"beta2", &C::beta2, 0, 0.9999999},
      {"epsilon", &C::epsilon, 1e-30, 1},
      {"gradientClip", &C::gradient_clip, 0, kMost},
      {"standardise", &C::standardise},
      {"standardiseClip", &C::standardise_clip, 0, kMost},
      {"validationFraction", &C::validation_fraction, 0, 0.9},
      {"shuffleRewards", &C::shuffle_rewards},
      {"allowSingleOutcome", &C::allow_single_outcome},
      {"precision", &C::precision, 0, 0, {"auto", "float32", "bfloat16"}},
      {"checkpointEvery", &C::checkpoint_every, 1, 1e9},
      {"evaluateEvery", &C::evaluate_every, 0, 1e9},
      {"regressor", &C::regressor},
      {"keepCheckpoint", &C::keep_checkpoint},
  };
  return table;
}

// Levenshtein distance; the names are short.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

const Field& find_field(const std::string& name) {
  const auto& table = fields();
  const auto found = std::find_if(table.begin(), table.end(), [&](const Field& f) { return name == f.name; });
  if (found != table.end()) return *found;
  const auto nearest = std::min_element(table.begin(), table.end(), [&](const Field& a, const Field& b) {
    return distance(name, a.name) < distance(name, b.name);
  });
  fail(ErrorCode::kConfigInvalid, "the training configuration has no setting '", name, "'; did you mean '",
       nearest->name, "'?");
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

struct Read {
  const Field& field;
  const JsonView& value;
  IqlConfig& config;

  void operator()(int64_t IqlConfig::*member) const {
    config.*member = value.as_int(static_cast<int64_t>(field.low), static_cast<int64_t>(field.high));
  }
  void operator()(double IqlConfig::*member) const {
    config.*member = value.as_double(field.low, field.high);
  }
  void operator()(bool IqlConfig::*member) const { config.*member = value.as_bool(); }
  void operator()(std::string IqlConfig::*member) const {
    const std::string text = value.as_string();
    if (std::find(field.choices.begin(), field.choices.end(), text) == field.choices.end())
      value.reject("expected one of ", joined(field.choices), ", got '", text, "'");
    config.*member = text;
  }
  void operator()(std::vector<int64_t> IqlConfig::*member) const {
    config.*member = value.as_ints(static_cast<int64_t>(field.low), static_cast<int64_t>(field.high));
    if ((config.*member).empty() || (config.*member).size() > 64) value.reject("expected 1 to 64 widths");
  }
};

void read_into(IqlConfig& config, const Json& options) {
  for (const auto& [key, value] : options.items()) {
    const Field& field = find_field(key);
    if (value.is_null()) continue;
    const JsonView view(value, "training configuration: " + key);
    std::visit(Read{field, view, config}, field.member);
  }
}

void check_consistent(const IqlConfig& c) {
  const auto reject = [](const auto&... parts) { fail(ErrorCode::kConfigInvalid, parts...); };
  if (!c.use_state && !c.use_task)
    reject("useState and useTask are both off, which leaves V nothing to look at; switch one of them on");
  if (!c.use_action) {
    if (c.conservative > 0) reject("conservative compares actions, but useAction is off");
    if (c.ranking > 0) reject("ranking compares actions, but useAction is off");
    if (c.use_match) reject("useMatch joins the action with the task, but useAction is off");
  }
  if (c.head_share < 1 && c.heads == 1)
    reject("headShare below 1 leaves data unused with a single head; set heads to 2 or more");
}

}  // namespace

IqlConfig resolve_config(const Json& options, const DataFacts& facts) {
  if (!options.is_object())
    fail(ErrorCode::kConfigInvalid, "the training configuration must be a JSON object, got ",
         options.type_name());
  const auto given = [&](const char* key) { return options.contains(key) && !options.at(key).is_null(); };
  IqlConfig config;
  read_into(config, options);
  const bool paper = config.preset == "paper";
  if (paper && !given("standardise")) config.standardise = false;
  if (!given("steps")) {
    const double pass =
        std::ceil(static_cast<double>(facts.transitions) / static_cast<double>(config.batch_size));
    config.steps = paper ? 50000 : std::max<int64_t>(1500, static_cast<int64_t>(20 * pass));
  }
  if (!given("targetPeriod"))
    config.target_period = paper ? 100 : std::clamp<int64_t>(config.steps / 500, 10, 100);
  if (!given("tau"))
    config.tau = paper ? (facts.success_rate > 0.8 ? 0.8 : 0.7) : (facts.success_rate >= 0.6 ? 0.7 : 0.6);
  if (!given("evaluateEvery")) config.evaluate_every = std::max<int64_t>(1, config.steps / 10);
  check_consistent(config);
  return config;
}

double validation_fraction_of(const Json& options) { return resolve_config(options, {}).validation_fraction; }

Json config_to_json(const IqlConfig& config) {
  Json json = Json::object();
  for (const Field& field : fields())
    std::visit([&](auto member) { json[field.name] = config.*member; }, field.member);
  return json;
}

}  // namespace boq::iql
