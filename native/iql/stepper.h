// How a run takes its steps: one by one from the host, or on CUDA as a graph that was captured once and is
// replayed. Then the data lie on the device, a step is a single launch, and nothing waits for the device
// until a report is asked for.
#pragma once

#include <memory>
#include <vector>

#include "native/iql/iql.h"
#include "native/iql/sampler.h"
#include "native/iql/standardiser.h"
#include "native/iql/transitions.h"

namespace boq::iql {

class Stepper {
 public:
  virtual ~Stepper() = default;
  /// One gradient step of all models. May return before the device is done.
  virtual void advance() = 0;
  /// Of the last step. Throws BOQ_NOT_FINITE where a loss or a gradient of any step so far was not finite;
  /// the models concerned have not moved in such a step.
  virtual std::vector<StepReport> report() = 0;
};

/// `samplers`: one a model. A graph where the learner is on CUDA, in float32, alone (no other processes),
/// without conservative and ranking terms, and where the data fit into half of the device's free memory; else
/// step by step.
std::unique_ptr<Stepper> make_stepper(Iql& learner, const Transitions& data,
                                      const Standardisers& standardisers,
                                      std::vector<const Sampler*> samplers, bool alone);

}  // namespace boq::iql
