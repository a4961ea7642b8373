#include "native/iql/labels.h"

#include <fstream>
#include <map>
#include <set>
#include <string>

#include "native/core/error.h"
#include "native/core/json.h"

namespace boq::iql {
namespace {

namespace fs = std::filesystem;

const std::set<std::string> kKeyFields = {"benchmark", "task",       "seed",  "policy",
                                          "selector",  "generation", "repeat"};
const std::set<std::string> kLabelFields = {"key", "success", "judge", "note"};

struct Label {
  bool success = false;
  int64_t line = 0;
  bool used = false;
};

// Calls f(line number, parsed object) for every line that is not empty.
template <class F>
void for_lines(const fs::path& path, F&& f) {
  std::ifstream stream(path);
  BOQ_CHECK(stream.good(), ErrorCode::kFileNotFound, "cannot read ", path.string());
  int64_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = path.string() + ":" + std::to_string(number);
    const Json json = parse_json(line, where, ErrorCode::kDataInvalid);
    f(number, JsonView(json, where, ErrorCode::kDataInvalid));
  }
  BOQ_CHECK(stream.eof(), ErrorCode::kFileCorrupt, "reading ", path.string(), " failed after line ", number);
}

// The episode's key as one text: fields in the order of their names.
std::string key_of(const JsonView& key) {
  for (const std::string& field : kKeyFields) {
    if (field == "seed" || field == "repeat")
      key.at(field).as_int();
    else
      key.at(field).as_string();
  }
  for (const auto& [field, value] : key.raw().items())
    if (kKeyFields.count(field) == 0) key.reject("an episode's key has no field '", field, "'");
  return key.raw().dump();
}

std::map<std::string, Label> read_labels(const fs::path& path) {
  std::map<std::string, Label> labels;
  for_lines(path, [&](int64_t line, const JsonView& view) {
    const std::string key = key_of(view.at("key"));
    const bool success = view.at("success").as_bool();
    for (const auto& [field, value] : view.raw().items())
      if (kLabelFields.count(field) == 0)
        view.reject("a label has no field '", field, "'; it has key, success, judge and note");
    const auto [place, is_new] = labels.emplace(key, Label{success, line});
    if (!is_new) view.reject("names the episode of line ", place->second.line, " again: ", key);
  });
  BOQ_CHECK(!labels.empty(), ErrorCode::kDataInvalid, path.string(),
            ": expected labels, one a line, found none");
  return labels;
}

}  // namespace

Relabelling apply_labels(Transitions& data, const std::vector<fs::path>& folders,
                         const fs::path& labels_path) {
  std::map<std::string, Label> labels = read_labels(labels_path);
  Relabelling result;
  size_t episode = 0;
  for (size_t i = 0; i < folders.size(); ++i) {
    const fs::path path = folders[i] / "episodes.jsonl";
    const size_t end = episode + static_cast<size_t>(data.sources[i].episodes), first = episode;
    for_lines(path, [&](int64_t, const JsonView& view) {
      if (episode == end) view.reject("expected ", end - first, " episodes; embed the run again");
      const size_t e = episode++;
      const auto found = labels.find(key_of(view.at("key")));
      if (found == labels.end()) return;
      Label& label = found->second;
      label.used = true;
      ++result.episodes;
      result.changed += (data.episode_success[e] != 0) != label.success;
      data.episode_success[e] = label.success;
      data.reward[static_cast<size_t>(data.episode_first[e] + data.episode_steps[e] - 1)] =
          label.success ? 1 : 0;
    });
    BOQ_CHECK(episode == end, ErrorCode::kDataInvalid, path.string(), ": expected ", end - first,
              " episodes, got ", episode - first, "; embed the run again");
    int64_t successes = 0;
    for (size_t e = first; e < end; ++e) successes += data.episode_success[e] != 0;
    if (end > first)
      data.sources[i].success_rate = static_cast<double>(successes) / static_cast<double>(end - first);
  }
  for (const auto& [key, label] : labels)
    BOQ_CHECK(label.used, ErrorCode::kDataInvalid, labels_path.string(), ":", label.line,
              ": none of the embedded runs has the episode ", key,
              "; name the runs that were judged, or drop the line");
  return result;
}

}  // namespace boq::iql
