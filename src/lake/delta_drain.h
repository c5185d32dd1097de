// What appends and changes of Delta tables share on this side of rust/delta's C ABI.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "columns/batch.h"
#include "lake/delta_abi.h"

namespace mssql_cdc::lake {

// A text that rust/delta handed out.
class Text {
 public:
  Text() = default;
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ~Text() { mssql_cdc_delta_free(text_); }

  char** out() { return &text_; }
  bool present() const { return text_ != nullptr; }
  std::string_view view() const { return text_ == nullptr ? "" : text_; }

 private:
  char* text_ = nullptr;
};

struct EndAppend {
  void operator()(MssqlCdcDeltaAppend* append) const {
    mssql_cdc_delta_append_end(append);
  }
};
using AppendPtr = std::unique_ptr<MssqlCdcDeltaAppend, EndAppend>;

// Drains all sources into an append or a change, on several threads when there are
// several. The error is that of the first source that failed by itself.
Status DrainAll(const MssqlCdcDeltaAppend* append,
                std::vector<std::unique_ptr<columns::BatchReader>> sources,
                const std::string& location);

}  // namespace mssql_cdc::lake
