// SPDX-License-Identifier: Apache-2.0
// The list of names that work in a mount but are never published until they get another name.
// README repeats it. Names are looked at one by one: below a folder with such a name nothing is
// published.
//
//   .tmpXXXXXX                   six letters or digits: safetensors' save_file before it renames
//   *.tmp *.part *.incomplete    downloads and savers (huggingface_hub, browsers, git-lfs)
//   *~  .*.swp .*.swx .*.swo  4913  #*#  .#*    vim and emacs
//   .~lock.*#                    office programs
//   .nfs*  .fuse_hidden*         what a removed but open file is called on NFS and FUSE
//   .DS_Store  ._*  Thumbs.db    macOS and Windows
//
// Not in it, on purpose: `*.lock` (filelock, git). They are ordinary names that people give to
// files they want to keep (poetry.lock, Cargo.lock, flake.lock): losing one silently is worse than
// publishing an empty one. Nor rsync's `.NAME.XXXXXX`: it cannot be told from a name such as
// `.config.backup`; rsync renames it at its end, and the quiet time outlasts that.
#include <algorithm>

#include "publish/work_tree.hpp"

namespace hfd::publish {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// `name` begins with `prefix`, ends with `suffix`, and has at least one byte between them.
bool is_between(std::string_view name, std::string_view prefix, std::string_view suffix) {
  return name.size() > prefix.size() + suffix.size() && name.starts_with(prefix) &&
         name.ends_with(suffix);
}

bool is_saver_name(std::string_view name) {
  constexpr std::string_view prefix = ".tmp";
  constexpr std::size_t random_letters = 6;
  return name.size() == prefix.size() + random_letters && name.starts_with(prefix) &&
         std::all_of(name.begin() + prefix.size(), name.end(), is_letter_or_digit);
}

}  // namespace

bool is_junk_name(std::string_view name) {
  struct Pattern {
    std::string_view prefix;
    std::string_view suffix;
  };
  static constexpr Pattern patterns[] = {
      {"", ".tmp"},         {"", ".part"}, {"", ".incomplete"}, {"", "~"},  {".", ".swp"},
      {".", ".swx"},        {".", ".swo"}, {"#", "#"},          {".#", ""}, {".nfs", ""},
      {".fuse_hidden", ""}, {"._", ""},    {".~lock.", "#"},
  };
  return name == "4913" || name == ".DS_Store" || name == "Thumbs.db" || is_saver_name(name) ||
         std::any_of(std::begin(patterns), std::end(patterns),
                     [&](const Pattern& p) { return is_between(name, p.prefix, p.suffix); });
}

}  // namespace hfd::publish
