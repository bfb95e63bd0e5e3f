//! A bar chart as SVG, readable on light ground and on dark.
//!
//! The hard idea: there is none. A picture of six bars needs arithmetic and text, no library that draws.

use super::table::number;

/// Pixels.
const WIDTH: f64 = 760.0;
const LABELS: f64 = 130.0;
/// Room behind the longest bar for its number.
const NUMBERS: f64 = 90.0;
const HEAD: f64 = 46.0;
const FOOT: f64 = 16.0;
const THICK: f64 = 15.0;
/// Between two targets.
const GAP: f64 = 11.0;
/// The shortest bar, which stands for nothing, and for less than nothing: noise.
const SHORTEST: f64 = 1.0;

/// How values become lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    Linear,
    /// From the power of ten below the smallest value.
    Logarithmic,
}

/// The bars of one target, one below the other.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) values: Vec<f64>,
    pub(super) is_ours: bool,
}

#[derive(Debug)]
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) subtitle: String,
    pub(super) scale: Scale,
    pub(super) bars: Vec<Bar>,
}

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#1f2328}\
.t{font-weight:600;font-size:14px}.s{fill:#59636e;font-size:12px}\
.o0{fill:#8c959f}.o1{fill:#c8cfd6}.u0{fill:#0969da}.u1{fill:#80b9f5}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9198a1}\
.o0{fill:#7d8590}.o1{fill:#484f58}.u0{fill:#4493f8}.u1{fill:#1f5fae}}";

impl Chart {
    pub(super) fn svg(&self) -> String {
        let mut top = HEAD;
        let mut body = String::new();
        for bar in &self.bars {
            body += &self.bar(bar, top);
            top += THICK * bar.values.len() as f64 + GAP;
        }
        let height = top - GAP + FOOT;
        let (title, subtitle) = (escaped(self.title), escaped(&self.subtitle));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{title}\">\n<style>{STYLE}</style>\n\
             <text class=\"t\" x=\"0\" y=\"16\">{title}</text>\n<text class=\"s\" x=\"0\" y=\"34\">{subtitle}</text>\n\
             {body}</svg>\n"
        )
    }

    fn bar(&self, bar: &Bar, top: f64) -> String {
        let middle = top + THICK * bar.values.len() as f64 / 2.0 + 4.5;
        let label = escaped(&bar.label);
        let mut text =
            format!("<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{label}</text>\n", LABELS - 8.0);
        for (place, value) in bar.values.iter().enumerate() {
            let (top, length) = (top + THICK * place as f64, self.length(*value));
            let class = format!("{}{}", if bar.is_ours { "u" } else { "o" }, place.min(1));
            text += &format!(
                "<rect class=\"{class}\" x=\"{LABELS}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{}\"/>\n\
                 <text class=\"s\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
                THICK - 1.0,
                LABELS + length + 6.0,
                top + 11.5,
                number(*value)
            );
        }
        text
    }

    /// Pixels of a value.
    fn length(&self, value: f64) -> f64 {
        let room = WIDTH - LABELS - NUMBERS;
        let largest = self.values().fold(0.0, f64::max);
        if value <= 0.0 || largest <= 0.0 {
            return SHORTEST;
        }
        let share = match self.scale {
            Scale::Linear => value / largest,
            Scale::Logarithmic => {
                let smallest = self.values().filter(|value| *value > 0.0).fold(largest, f64::min);
                // One further down where it would be a power of ten itself: its bar is to be seen.
                let floor = (smallest.log10() - 0.1).floor();
                (value.log10() - floor) / (largest.log10() - floor)
            }
        };
        (share * room).max(SHORTEST)
    }

    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.bars.iter().flat_map(|bar| bar.values.iter().copied())
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}
