// SPDX-License-Identifier: BSL-1.0
//
// A picture as SVG that stands alone or within a page, and the colours of all pictures.
#pragma once

#include "railpass/base/xml.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railpass::report {

inline constexpr std::string_view best_colour = "#0b6e4f", other_colour = "#8fa3ad",
                                  ink = "#22313a", grid_colour = "#c5d0d6";

/// With five digits at most.
inline std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", x);
  return text;
}

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
  void text(double x, double y, const std::string& words, std::string_view anchor = "start",
            double size = 12) {
    body_ += "<text" + at("x", x) + at("y", y) + at("font-size", size) + " text-anchor=\"" +
             std::string(anchor) + "\">" + xml_text(words) + "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, std::string_view colour = grid_colour) {
    body_ += "<line" + at("x1", x1) + at("y1", y1) + at("x2", x2) + at("y2", y2) + " stroke=\"" +
             std::string(colour) + "\"/>\n";
  }
  void curve(const std::vector<std::pair<double, double>>& points, std::string_view colour) {
    body_ += "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"" + std::string(colour) +
             "\" points=\"";
    for (const auto& [x, y] : points) body_ += number(x) + ',' + number(y) + ' ';
    body_ += "\"/>\n";
  }

  std::string svg() const {
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width_) + " " +
           number(height_) + "\"" + at("width", width_) + at("height", height_) +
           " font-family=\"Helvetica, Arial, sans-serif\"" + filled(ink) + ">\n" + body_ +
           "</svg>\n";
  }

 private:
  static std::string at(const char* name, double value) {
    return std::string(" ") + name + "=\"" + number(value) + '"';
  }
  static std::string filled(std::string_view colour) {
    return " fill=\"" + std::string(colour) + '"';
  }
  static std::string end(const char* element, const std::string& hint) {
    return hint.empty() ? "/>\n" : "><title>" + xml_text(hint) + "</title></" + element + ">\n";
  }

  double width_, height_;
  std::string body_;
};

}  // namespace railpass::report
