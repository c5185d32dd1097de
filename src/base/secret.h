// A credential: shows as ***, is wiped when it goes, and is copied on purpose only.

#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace mssql_cdc {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret& other) {
    if (this != &other) {
      Wipe();
      text_ = other.text_;
    }
    return *this;
  }
  Secret(Secret&& other) noexcept : text_(std::move(other.text_)) { other.Wipe(); }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      Wipe();
      text_ = std::move(other.text_);
      other.Wipe();
    }
    return *this;
  }
  ~Secret() { Wipe(); }

  // The credential itself. Goes to the wire and nowhere else.
  const std::string& Reveal() const { return text_; }
  bool empty() const { return text_.empty(); }
  std::string_view Text() const { return "***"; }

 private:
  void Wipe() {
    volatile char* bytes = text_.data();
    for (std::size_t i = 0; i < text_.size(); ++i) bytes[i] = 0;
    text_.clear();
  }

  std::string text_;
};

}  // namespace mssql_cdc
