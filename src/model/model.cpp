#include "model/model.h"

#include <algorithm>
#include <mutex>

namespace allranks::model {

const char* NameOf(Message::Role role) {
  switch (role) {
    case Message::Role::kSystem:
      return "system";
    case Message::Role::kUser:
      return "user";
    case Message::Role::kAssistant:
      return "assistant";
  }
  return "?";
}

const char* NameOf(Finish finish) {
  switch (finish) {
    case Finish::kStop:
      return "stop";
    case Finish::kLength:
      return "length";
    case Finish::kRefused:
      return "refused";
    case Finish::kOther:
      return "other";
  }
  return "?";
}

const char* NameOf(Failure::Kind kind) {
  switch (kind) {
    case Failure::Kind::kStopped:
      return "stopped";
    case Failure::Kind::kBudget:
      return "budget";
    case Failure::Kind::kModel:
      return "model";
    case Failure::Kind::kRequest:
      return "request";
    case Failure::Kind::kGaveUp:
      return "gave_up";
    case Failure::Kind::kOurs:
      return "ours";
  }
  return "?";
}

Usage& Usage::operator+=(const Usage& other) {
  input += other.input;
  cached_input += other.cached_input;
  output += other.output;
  reasoning += other.reasoning;
  return *this;
}

struct Budget::State {
  std::mutex mutex;
  double limit = 0, spent = 0, reserved = 0;
  int reservations = 0;
};

Budget::Budget(double dollars) : state_(std::make_shared<State>()) { state_->limit = dollars; }

bool Budget::Reserve(double dollars) {
  const std::lock_guard lock(state_->mutex);
  if (state_->spent + state_->reserved + dollars > state_->limit) return false;
  state_->reserved += dollars;
  if (dollars > 0) ++state_->reservations;
  return true;
}

void Budget::Settle(double reserved, double spent) {
  const std::lock_guard lock(state_->mutex);
  state_->reserved = std::max(0.0, state_->reserved - reserved);
  // What rounding left is not set aside by anybody.
  if (reserved > 0 && --state_->reservations == 0) state_->reserved = 0;
  state_->spent += spent;
}

void Budget::AddSpent(double dollars) { Settle(0, dollars); }

double Budget::spent() const {
  const std::lock_guard lock(state_->mutex);
  return state_->spent;
}

double Budget::limit() const { return state_->limit; }

}  // namespace allranks::model
