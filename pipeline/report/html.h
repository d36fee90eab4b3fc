// Small pieces of HTML and SVG as text. Everything that comes from files goes through escaped().
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace takt::pipeline {

// Text for element content and double-quoted attributes, in HTML and XML. Control characters become spaces, bytes that
// are no UTF-8 become U+FFFD.
std::string escaped(std::string_view text);

// A table that turns into labelled cards on narrow screens. Cells are HTML: escape them first.
class HtmlTable {
 public:
  struct Column {
    std::string name;
    bool number = false;  // right-aligned, tabular figures
  };
  explicit HtmlTable(std::vector<Column> columns);
  // One cell per column; the first heads the row. `row_class`: CSS class, "" for none.
  void row(const std::vector<std::string>& cells, std::string_view row_class = "");
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::string html() const;

 private:
  std::vector<Column> columns_;
  std::string rows_;
};

// An SVG picture of a fixed drawing size; the style sheet scales it. Coordinates in drawing units, y down.
class Svg {
 public:
  // `description`: what the picture shows, for readers that cannot see it. `css_class`: of the <svg> element.
  Svg(double width, double height, std::string_view description, std::string_view css_class);
  // `title`: shown on hover, "" for none.
  void rect(double x, double y, double w, double h, std::string_view css_class, std::string_view title = "");
  void line(double x0, double y0, double x1, double y1, std::string_view css_class);
  void circle(double x, double y, double r, std::string_view css_class, std::string_view title = "");
  enum class Anchor { kStart, kMiddle, kEnd };
  void text(double x, double y, std::string_view text, std::string_view css_class, Anchor anchor = Anchor::kStart);
  void polygon(const std::vector<std::pair<double, double>>& points, std::string_view css_class,
               std::string_view title = "");
  void path(std::string_view data, std::string_view css_class);
  void raw(std::string_view markup) { body_ += markup; }
  [[nodiscard]] std::string str() const;

 private:
  std::string head_, body_;
};

// A coordinate with at most two decimals and no trailing zeros.
std::string coordinate(double value);

}  // namespace takt::pipeline
