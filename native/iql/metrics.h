// What is measured while training goes on, and the file that keeps it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace boq::iql {

struct StepReport;

/// Named values of one moment: loss/v, loss/q, value/v_mean, value/q_mean, value/adv_mean, grad/v_norm,
/// grad/q_norm, lr, and, where they were measured, validation/*.
using Metrics = std::map<std::string, double>;

/// The values of one step under their names.
Metrics metrics_of(const StepReport& report);

/// metrics.jsonl: one object a line, the step first among equals.
class MetricsLog {
 public:
  /// Keeps the lines up to `last_step`; what came after the checkpoint will be written again. Throws
  /// BOQ_FILE_WRITE.
  MetricsLog(const std::filesystem::path& path, int64_t last_step);

  void add(int64_t step, const Metrics& metrics);

  /// Throws BOQ_FILE_WRITE where the disk did not take a line.
  void flush();

 private:
  std::filesystem::path path_;
  std::ofstream stream_;
};

}  // namespace boq::iql
