// SPDX-License-Identifier: Apache-2.0
#include "api/content_stream.hpp"

#include <algorithm>
#include <deque>
#include <memory>

#include "base/answer.hpp"

namespace hfd::api {
Result<void> stream_content(rebuild::Rebuilder& rebuilder, const rebuild::ContentRef& content,
                            ByteRange range, const base::ByteSink& sink) {
  constexpr std::size_t window = stream_window_bytes / stream_piece_bytes;
  std::deque<std::shared_ptr<base::Answer<base::Bytes>>> under_way;
  std::uint64_t asked = 0;
  while (asked < range.size || !under_way.empty()) {
    while (asked < range.size && under_way.size() < window) {
      const std::uint64_t bytes = std::min(stream_piece_bytes, range.size - asked);
      auto piece = std::make_shared<base::Answer<base::Bytes>>();
      rebuilder.read(content, ByteRange{range.offset + asked, bytes},
                     [piece](Result<base::Bytes> result) { piece->give(std::move(result)); });
      under_way.push_back(std::move(piece));
      asked += bytes;
    }
    HFD_TRY(const base::Bytes bytes, under_way.front()->wait());
    under_way.pop_front();
    HFD_TRY_VOID(sink(bytes));
  }
  return {};
}

}  // namespace hfd::api
