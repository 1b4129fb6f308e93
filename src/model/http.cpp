// The multi interface with one transfer: curl_easy_perform() looks at its callbacks once a second
// only, and its limits of slowness are whole seconds; here the loop is ours, so that a Stop ends a
// silent transfer at once.
#include "model/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "base/check.h"

namespace allranks::model {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLook = std::chrono::milliseconds(30);      // for the Stop and the limits
constexpr auto kLinger = std::chrono::milliseconds(2000);  // after the reply was whole
constexpr std::size_t kLargestHeaders = 1u << 20;

struct Handles {
  CURLM* multi = nullptr;
  CURL* easy = nullptr;
  Handles() {
    static const CURLcode kGlobal = curl_global_init(CURL_GLOBAL_DEFAULT);
    CHECK(kGlobal == CURLE_OK, "libcurl cannot be initialised");
    multi = curl_multi_init();
    easy = curl_easy_init();
    CHECK(multi != nullptr && easy != nullptr, "libcurl: out of memory");
  }
  ~Handles() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
};

struct Transfer {
  const HttpRequest* request = nullptr;
  HttpResponse* response = nullptr;
  CURL* easy = nullptr;
  Clock::time_point last_byte;
  Clock::time_point done_at;
  std::size_t header_bytes = 0;
  bool started = false;  // a byte of the reply has come
  bool done = false;
  bool too_large = false;
  bool begun = false;  // the request has been given to a connection
};

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

std::size_t OnHeader(char* data, std::size_t, std::size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  transfer.last_byte = Clock::now();
  transfer.started = true;
  transfer.header_bytes += size;
  if (transfer.header_bytes > kLargestHeaders) {
    transfer.too_large = true;
    return 0;
  }
  const std::string_view line(data, size);
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string_view value = Trimmed(line.substr(colon + 1)).substr(0, 100);
  if (name == "retry-after") transfer.response->retry_after = value;
  if (name == "retry-after-ms") transfer.response->retry_after_ms = value;
  return size;
}

std::size_t OnBody(char* data, std::size_t, std::size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  transfer.last_byte = Clock::now();
  transfer.started = true;
  std::string& body = transfer.response->body;
  if (body.size() + size > transfer.request->largest_body) {
    transfer.too_large = true;
    return 0;
  }
  body.append(data, size);
  long status = 0;
  curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
  if (status == 200 && transfer.request->on_body &&
      transfer.request->on_body(std::string_view(data, size)) && !transfer.done) {
    transfer.done = true;
    transfer.done_at = Clock::now();
  }
  return size;
}

// libcurl sends a request again by itself if a connection that it used before breaks without a byte
// of reply. The provider may have begun to charge for it by then: that is not its to decide.
int OnSend(void* user, char*, char*, int, int) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (transfer.begun) return CURL_PREREQFUNC_ABORT;
  transfer.begun = true;
  return CURL_PREREQFUNC_OK;
}

HttpResponse::End EndOf(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpResponse::End::kWhole;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_OPERATION_TIMEDOUT:  // of the connection: the other limits are ours
      return HttpResponse::End::kConnect;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return HttpResponse::End::kUnusable;
    default:
      return HttpResponse::End::kBroken;
  }
}

// A model on this machine is not behind the proxy of the environment.
bool OnThisMachine(const std::string& url) {
  for (const char* start :
       {"http://127.", "http://localhost:", "http://localhost/", "http://[::1]"})
    if (url.starts_with(start)) return true;
  return false;
}

}  // namespace

HttpResponse Post(const HttpRequest& request, const Stop& stop) {
  static thread_local Handles handles;
  HttpResponse response;
  Transfer transfer;
  transfer.request = &request;
  transfer.response = &response;
  CURL* const easy = transfer.easy = handles.easy;
  curl_easy_reset(easy);  // keeps the connections

  struct ListDeleter {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };
  std::unique_ptr<curl_slist, ListDeleter> headers;
  const auto add = [&](const char* header) {
    curl_slist* const longer = curl_slist_append(headers.get(), header);
    CHECK(longer != nullptr, "libcurl: out of memory");
    (void)headers.release();
    headers.reset(longer);
  };
  for (const std::string& header : request.headers) add(header.c_str());
  add("Expect:");  // no question before a long body

  char why[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why);
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): its size stands above
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "allranks");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  // Balancers close what is idle for a minute: a request that meets such an end is one lost.
  curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, 50L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   std::max<long>(1, static_cast<long>(request.connect.count())));
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, OnSend);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, &transfer);
  if (OnThisMachine(request.url)) curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");

  const auto begin = Clock::now();
  transfer.last_byte = begin;
  curl_off_t uploaded = 0;
  bool over = false;
  CHECK(curl_multi_add_handle(handles.multi, easy) == CURLM_OK, "libcurl refuses a transfer");
  const auto cut = [&](HttpResponse::End end, std::string error) {
    response.end = end;
    response.error = std::move(error);
    over = true;
  };
  while (!over) {
    int running = 0;
    const CURLMcode code = curl_multi_perform(handles.multi, &running);
    CHECK(code == CURLM_OK, "libcurl: {}", curl_multi_strerror(code));
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(handles.multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode result = message->data.result;
      if (transfer.too_large) {
        cut(HttpResponse::End::kTooLarge,
            fmt::format("the reply is longer than {} bytes", request.largest_body));
      } else if (transfer.done) {
        cut(HttpResponse::End::kDone, "");
      } else {
        cut(EndOf(result), result == CURLE_OK ? ""
                           : why[0] != '\0'   ? std::string(why)
                                              : std::string(curl_easy_strerror(result)));
      }
    }
    if (over) break;
    const auto now = Clock::now();
    curl_off_t sent = 0;
    curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    if (sent != uploaded) transfer.last_byte = now;
    uploaded = sent;
    const bool stallable = transfer.started || !request.stall_from_reply;
    if (transfer.done && (stop.requested() || now - transfer.done_at > kLinger)) {
      cut(HttpResponse::End::kDone, "");
    } else if (stop.requested()) {
      cut(HttpResponse::End::kStopped, "stopped");
    } else if (now - begin > request.total) {
      cut(HttpResponse::End::kTooLong,
          fmt::format("the reply is not complete after {:.3g} s",
                      1e-3 * static_cast<double>(request.total.count())));
    } else if (stallable && !transfer.done && now - transfer.last_byte > request.stall) {
      cut(HttpResponse::End::kStalled,
          fmt::format("no data for {:.3g} s", 1e-3 * static_cast<double>(request.stall.count())));
    } else {
      curl_multi_poll(handles.multi, nullptr, 0, static_cast<int>(kLook.count()), nullptr);
    }
  }
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &response.status);
  curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
  response.sent = response.status != 0 || static_cast<std::size_t>(uploaded) >= request.body.size();
  curl_multi_remove_handle(handles.multi, easy);  // what was cut off is closed, not used again
  return response;
}

}  // namespace allranks::model
