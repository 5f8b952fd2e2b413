// SPDX-License-Identifier: Apache-2.0
#include "remote/remote.hpp"

#include "base/answer.hpp"
#include "remote/folder_remote.hpp"
#include "remote/object_name.hpp"

namespace hfd::remote {
namespace {

std::string_view kind_text(UriKind kind) {
  switch (kind) {
    case UriKind::folder: return "folders";
    case UriKind::hub_repo: return "Hub repos";
    case UriKind::hub_bucket: return "Hub buckets";
    case UriKind::s3: return "S3 buckets";
    case UriKind::http: return "HTTP servers";
  }
  return "such remotes";
}

}  // namespace

Result<void> check_object_name(std::string_view name) {
  const Error bad{ErrorCode::invalid_argument, "not a valid object name",
                  std::string(name.substr(0, 200))};
  if (name.empty() || name.find('\0') != std::string_view::npos) {
    return bad;
  }
  std::size_t start = 0;
  while (start <= name.size()) {
    const std::size_t slash = std::min(name.find('/', start), name.size());
    const std::string_view segment = name.substr(start, slash - start);
    if (segment.empty() || segment == "." || segment == "..") {
      return bad;
    }
    start = slash + 1;
  }
  return {};
}

Result<base::Bytes> read_blocking(Remote& remote, const std::string& name, ByteRange range,
                                  base::Deadline deadline) {
  const auto answer = std::make_shared<base::Answer<base::Bytes>>();
  remote.read(name, range, deadline,
              [answer](Result<base::Bytes> bytes) { answer->give(std::move(bytes)); });
  return answer->wait();  // the remote answers by the deadline
}

Result<base::Bytes> read_whole(Remote& remote, const std::string& name, std::uint64_t bytes_max,
                               base::Deadline deadline) {
  HFD_TRY(const ObjectInfo info, remote.head(name));
  if (info.bytes > bytes_max) {
    return Error{ErrorCode::corrupt, "the object is larger than such an object may be", name};
  }
  return read_blocking(remote, name, ByteRange{0, info.bytes}, deadline);
}

Result<std::unique_ptr<Remote>> open_remote(const ParsedUri& uri, bool create) {
  if (uri.kind == UriKind::folder) {
    return open_folder(uri, create);
  }
  Error error{ErrorCode::unsupported,
              "cannot open it: " + std::string(kind_text(uri.kind)) + " come with a later version",
              uri.canonical};
  return std::move(error).with_hint("use a folder for now");
}

}  // namespace hfd::remote
