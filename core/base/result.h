#pragma once
// Result<T>: a value, or the reason why this op, dtype or layout is not supported. The driver turns an
// Unsupported into an extern step and records the reason; nothing else may drop it.
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace kerf {

struct Unsupported {
  std::string reason;  // names the op, shapes and dtypes, and why
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}              // NOLINT: conversion is the point
  Result(Unsupported reason) : state_(std::move(reason)) {}  // NOLINT
  explicit operator bool() const { return std::holds_alternative<T>(state_); }
  T& operator*() {
    CHECK(*this, "value of an unsupported result: {}", reason());
    return std::get<T>(state_);
  }
  const T& operator*() const { return *const_cast<Result&>(*this); }
  T* operator->() { return &**this; }
  const std::string& reason() const { return std::get<Unsupported>(state_).reason; }

 private:
  std::variant<T, Unsupported> state_;
};

}  // namespace kerf
