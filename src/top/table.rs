//! Cells in columns, as lines of text.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Blanks between two columns.
const GAP: usize = 2;

/// Where a column's texts stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// One cell: pieces of text, each in its style.
pub(super) type Cell = Vec<Span<'static>>;

/// A cell of one piece. A terminal obeys control characters, so there are none.
pub(super) fn cell(text: impl AsRef<str>, style: Style) -> Cell {
    vec![span(text, style)]
}

/// A piece of text.
pub(super) fn span(text: impl AsRef<str>, style: Style) -> Span<'static> {
    let text = text.as_ref().chars().map(|letter| if letter.is_control() { '·' } else { letter });
    Span::styled(text.collect::<String>(), style)
}

/// The lines of a table: each column as wide as its widest cell.
pub(super) fn lines(sides: &[Side], rows: Vec<Vec<Cell>>) -> Vec<Line<'static>> {
    let width = |cell: &Cell| cell.iter().map(Span::width).sum::<usize>();
    let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(width).max().unwrap_or(0);
    let widths: Vec<usize> = (0..sides.len()).map(widest).collect();
    let line = |row: Vec<Cell>| {
        let mut spans = vec![Span::raw(" ".repeat(GAP))];
        for ((cell, side), wide) in row.into_iter().zip(sides).zip(&widths) {
            let blank = Span::raw(" ".repeat(wide - width(&cell)));
            let before = *side == Side::Right;
            spans.extend(before.then(|| blank.clone()));
            spans.extend(cell);
            spans.extend((!before).then_some(blank));
            spans.push(Span::raw(" ".repeat(GAP)));
        }
        Line::from(spans)
    };
    rows.into_iter().map(line).collect()
}
