#include "native/iql/metrics.h"

#include "native/core/error.h"
#include "native/core/files.h"
#include "native/core/json.h"
#include "native/iql/iql.h"

namespace boq::iql {

Metrics metrics_of(const StepReport& report) {
  return {{"loss/v", report.loss_v},
          {"loss/q", report.loss_q},
          {"value/v_mean", report.v_mean},
          {"value/q_mean", report.q_mean},
          {"value/adv_mean", report.advantage},
          {"grad/v_norm", report.v_norm},
          {"grad/q_norm", report.q_norm},
          {"lr", report.learning_rate}};
}

MetricsLog::MetricsLog(const std::filesystem::path& path, int64_t last_step) : path_(path) {
  std::string kept;
  std::ifstream old(path);
  for (std::string line; last_step > 0 && std::getline(old, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.value("step", int64_t{0}) > 0 && json.value("step", int64_t{0}) <= last_step)
      kept += line + "\n";
  }
  old.close();
  write_text(path, kept);
  stream_.open(path, std::ios::app);
}

void MetricsLog::add(int64_t step, const Metrics& metrics) {
  Json json = metrics;
  json["step"] = step;
  stream_ << json.dump() << '\n';
}

void MetricsLog::flush() {
  stream_.flush();
  BOQ_CHECK(stream_.good(), ErrorCode::kFileWrite, "cannot write ", path_.string(), "; is the disk full?");
}

}  // namespace boq::iql
