// Runs something that must fail with one given code and a message that names the place.
#pragma once

#include <string>

#include "doctest/doctest.h"
#include "native/core/error.h"

namespace boq::test {

template <class Action>
void expect_error(ErrorCode code, const std::string& part_of_message, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK_MESSAGE(error.code() == code, "got ", std::string(error_code_name(error.code())), ": ",
                  std::string(error.what()));
    CHECK_MESSAGE(std::string(error.what()).find(part_of_message) != std::string::npos, "the message lacks '",
                  part_of_message, "': ", std::string(error.what()));
    return;
  }
  FAIL_CHECK("expected ", std::string(error_code_name(code)), " with '", part_of_message,
             "', nothing was thrown");
}

}  // namespace boq::test
