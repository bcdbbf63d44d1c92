// libarchive converts names between the character set of an archive and that of the thread's
// locale. A name here is bytes, so the thread has one of ours while libarchive works.
#pragma once

#include <locale.h>

#include <clocale>

namespace palmshed::workspace {

/// A locale for character sets; null when the host has none of that name.
class CtypeLocale {
 public:
  explicit CtypeLocale(const char* name) : locale_(::newlocale(LC_CTYPE_MASK, name, nullptr)) {}
  CtypeLocale(const CtypeLocale&) = delete;
  CtypeLocale& operator=(const CtypeLocale&) = delete;
  ~CtypeLocale() {
    if (locale_ != nullptr) ::freelocale(locale_);
  }
  locale_t get() const { return locale_; }

 private:
  locale_t locale_;
};

/// The thread has `locale` for as long as this lives.
class WithLocale {
 public:
  explicit WithLocale(locale_t locale) : before_(::uselocale(locale)) {}
  WithLocale(const WithLocale&) = delete;
  WithLocale& operator=(const WithLocale&) = delete;
  ~WithLocale() { (void)::uselocale(before_); }
  /// What the thread had.
  locale_t before() const { return before_; }

 private:
  locale_t before_;
};

}  // namespace palmshed::workspace
