#include "pipeline/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace takt::pipeline {

namespace {

// Length of the UTF-8 sequence at the start of `text` (RFC 3629, without surrogates and overlong forms), 0 when
// invalid.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF && tail(1)) return 2;
  if (first >= 0xE0 && first <= 0xEF && tail(1) && tail(2)) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0, surrogate = first == 0xED && byte(1) >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (first >= 0xF0 && first <= 0xF4 && tail(1) && tail(2) && tail(3)) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90, beyond = first == 0xF4 && byte(1) >= 0x90;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    const char c = text[i];
    if (length == 0) {
      out += "\uFFFD";
    } else if (length > 1) {
      out += text.substr(i, length);
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    }
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string coordinate(double value) {
  if (!std::isfinite(value)) return "0";
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

HtmlTable::HtmlTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void HtmlTable::row(const std::vector<std::string>& cells, std::string_view row_class) {
  rows_ += row_class.empty() ? "<tr>" : "<tr class=\"" + std::string(row_class) + "\">";
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string cell = i < cells.size() ? cells[i] : "";
    const std::string attributes = columns_[i].number ? " class=\"n\"" : "";
    if (i == 0) {
      rows_ += "<th scope=\"row\"" + attributes + ">" + cell + "</th>";
    } else {
      rows_ += "<td" + attributes + " data-label=\"" + escaped(columns_[i].name) + "\"><span>" + cell + "</span></td>";
    }
  }
  rows_ += "</tr>\n";
}

std::string HtmlTable::html() const {
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (const Column& column : columns_) {
    out += column.number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">";
    out += escaped(column.name) + "</th>";
  }
  return out + "</tr></thead><tbody>\n" + rows_ + "</tbody></table></div>\n";
}

Svg::Svg(double width, double height, std::string_view description, std::string_view css_class) {
  head_ = fmt::format("<svg class=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", css_class,
                      coordinate(width), coordinate(height), escaped(description));
}

namespace {
std::string closed(std::string_view element, std::string_view title) {
  if (title.empty()) return "/>";
  return fmt::format("><title>{}</title></{}>", escaped(title), element);
}
}  // namespace

void Svg::rect(double x, double y, double w, double h, std::string_view css_class, std::string_view title) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"", coordinate(x), coordinate(y),
                       coordinate(std::max(w, 0.0)), coordinate(std::max(h, 0.0)), css_class) +
           closed("rect", title);
}

void Svg::line(double x0, double y0, double x1, double y1, std::string_view css_class) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>", coordinate(x0), coordinate(y0),
                       coordinate(x1), coordinate(y1), css_class);
}

void Svg::circle(double x, double y, double r, std::string_view css_class, std::string_view title) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{}\"", coordinate(x), coordinate(y), coordinate(r),
                       css_class) +
           closed("circle", title);
}

void Svg::text(double x, double y, std::string_view text, std::string_view css_class, Anchor anchor) {
  const char* where = anchor == Anchor::kStart ? "start" : anchor == Anchor::kMiddle ? "middle" : "end";
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" class=\"{}\">{}</text>", coordinate(x),
                       coordinate(y), where, css_class, escaped(text));
}

void Svg::polygon(const std::vector<std::pair<double, double>>& points, std::string_view css_class,
                  std::string_view title) {
  body_ += "<polygon points=\"";
  for (std::size_t i = 0; i < points.size(); ++i) {
    body_ += (i == 0 ? "" : " ") + coordinate(points[i].first) + "," + coordinate(points[i].second);
  }
  body_ += fmt::format("\" class=\"{}\"", css_class) + closed("polygon", title);
}

void Svg::path(std::string_view data, std::string_view css_class) {
  body_ += fmt::format("<path d=\"{}\" class=\"{}\"/>", data, css_class);
}

std::string Svg::str() const { return head_ + body_ + "</svg>"; }

}  // namespace takt::pipeline
