// SPDX-License-Identifier: BSL-1.0
//
// A picture as SVG that stands alone.
#pragma once

#include "lib/report/style.hpp"
#include "lib/report/xml.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railpass::internal::report {

struct text_style {
  std::string_view anchor = "start";
  double size = 12;
  std::string_view colour = ink;
  bool bold = false;
  bool on_a_bar = false;  ///< what the mouse rests on is the bar
};

struct stroke {
  std::string_view colour = grid_colour;
  double width = 1;
  double opacity = 1;
  bool arrow = false;  ///< has a head at its end
};

/// Lengths are in pixels, from the upper left corner; a hint is shown where the mouse rests.
class drawing {
 public:
  drawing(double width, double height) : width_(width), height_(height) {}

  void rectangle(double x, double y, double w, double h, std::string_view colour,
                 const std::string& hint = {}) {
    body_ += "<rect" + at("x", x) + at("y", y) + at("width", std::max(w, 0.5)) +
             at("height", std::max(h, 0.5)) + filled(colour) + end("rect", hint);
  }
  void circle(double x, double y, double r, std::string_view colour, const std::string& hint = {}) {
    body_ +=
        "<circle" + at("cx", x) + at("cy", y) + at("r", r) + filled(colour) + end("circle", hint);
  }
  void text(double x, double y, std::string_view words, const text_style& style = {}) {
    body_ += "<text" + at("x", x) + at("y", y) + at("font-size", style.size) +
             named("text-anchor", style.anchor);
    if (style.colour != ink) body_ += named("fill", style.colour);
    if (style.bold) body_ += named("font-weight", "bold");
    if (style.on_a_bar) body_ += named("pointer-events", "none");
    body_ += '>' + xml_text(words) + "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, const stroke& with = {}) {
    body_ +=
        "<line" + at("x1", x1) + at("y1", y1) + at("x2", x2) + at("y2", y2) + drawn(with) + "/>\n";
  }
  void curve(const std::vector<std::pair<double, double>>& points, const stroke& with) {
    body_ +=
        "<polyline" + named("fill", "none") + drawn(with) + " points=\"" + list(points) + "\"/>\n";
  }
  void area(const std::vector<std::pair<double, double>>& corners, std::string_view colour) {
    body_ += "<polygon" + named("fill", colour) + " points=\"" + list(corners) + "\"/>\n";
  }

  std::string svg() const {
    std::string head;
    if (has_arrows_)
      head =
          "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" "
          "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto-start-reverse\">"
          "<path d=\"M0 0.8 L8 4 L0 7.2 z\"" +
          named("fill", faint_ink) + "/></marker></defs>\n";
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width_) + " " +
           number(height_) + "\"" + at("width", width_) + at("height", height_) +
           " font-family=\"Helvetica, Arial, sans-serif\"" + named("fill", ink) + ">\n" + head +
           "<rect width=\"100%\" height=\"100%\"" + named("fill", paper) + "/>\n" + body_ +
           "</svg>\n";
  }

 private:
  static std::string at(const char* name, double value) {
    return std::string(" ") + name + "=\"" + number(value) + '"';
  }
  static std::string named(const char* name, std::string_view value) {
    return std::string(" ") + name + "=\"" + std::string(value) + '"';
  }
  static std::string filled(std::string_view colour) { return named("fill", colour); }
  std::string drawn(const stroke& s) {
    std::string text = named("stroke", s.colour);
    if (s.width != 1) text += at("stroke-width", s.width);
    if (s.opacity != 1) text += at("stroke-opacity", s.opacity);
    if (s.arrow) text += named("marker-end", "url(#head)");
    has_arrows_ = has_arrows_ || s.arrow;
    return text;
  }
  static std::string list(const std::vector<std::pair<double, double>>& points) {
    std::string text;
    for (const auto& [x, y] : points)
      text += (text.empty() ? "" : " ") + number(x) + ',' + number(y);
    return text;
  }
  static std::string end(const char* element, const std::string& hint) {
    return hint.empty() ? "/>\n" : "><title>" + xml_text(hint) + "</title></" + element + ">\n";
  }

  double width_, height_;
  std::string body_;
  bool has_arrows_ = false;
};

}  // namespace railpass::internal::report
