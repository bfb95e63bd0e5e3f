//! The view on a screen that follows, until its reader has seen enough.
//!
//! The terminal is given back as it was however this ends: by a key, by a signal, by an error, by a panic (ratatui's
//! hook).

use std::time::Duration;

use crossterm::event::{Event, EventStream, KeyCode, KeyEventKind, KeyModifiers};
use futures::StreamExt;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::client::{Client, Error};
use super::lines;
use crate::admin::place::Place;
use crate::live::view::View;
use crate::secret::Secret;

/// After so long it is tried again to reach the gateway.
const AGAIN: Duration = Duration::from_secs(1);

/// What is shown.
#[derive(Debug, Default)]
struct Shown {
    view: Option<View>,
    /// Why there is nothing newer.
    trouble: Option<String>,
    /// The first line on the screen.
    top: usize,
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Quit,
    /// To see what is so many lines, or screens, further down; up where it is negative.
    Lines(isize),
    Screens(isize),
    Nothing,
}

/// Gives the terminal back.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows the view of the gateway at `place` until a key or a signal ends it.
///
/// # Errors
/// The gateway refuses or cannot be reached at first, or the terminal cannot be used.
pub(super) async fn show(place: Place, token: Option<Secret>) -> Result<(), Error> {
    let client = Client::connect(&place, token.as_ref()).await?;
    let broken = |error: std::io::Error| Error::Terminal(error.to_string());
    let end = signal(SignalKind::terminate()).map_err(broken)?;
    let interrupt = signal(SignalKind::interrupt()).map_err(broken)?;
    let (tell, told) = watch::channel(Ok(None));
    let watching = tokio::spawn(follow(client, place, token, tell));
    let terminal = ratatui::try_init().map_err(broken)?;
    let _restored = Restored;
    let shown = run(terminal, told, [end, interrupt]).await.map_err(broken);
    watching.abort();
    shown
}

/// What is known of the gateway: its newest view, or why there is none.
type News = Result<Option<Box<View>>, Error>;

/// Watches the gateway, and looks for it again where it has gone.
async fn follow(client: Client, place: Place, token: Option<Secret>, tell: watch::Sender<News>) {
    let mut client = Ok(client);
    loop {
        let news = match &mut client {
            Ok(client) => client.next().await.map(|view| Some(Box::new(view))),
            Err(error) => Err(Error::clone(error)),
        };
        let is_lost = news.is_err();
        if tell.send(news).is_err() {
            return;
        }
        if is_lost {
            tokio::time::sleep(AGAIN).await;
            client = Client::connect(&place, token.as_ref()).await;
        }
    }
}

async fn run(
    mut terminal: DefaultTerminal,
    mut told: watch::Receiver<News>,
    [mut end, mut interrupt]: [Signal; 2],
) -> std::io::Result<()> {
    let (mut keys, mut shown) = (EventStream::new(), Shown::default());
    loop {
        terminal.draw(|frame| draw(frame, &mut shown))?;
        let event = tokio::select! {
            _ = told.changed() => {
                match &*told.borrow_and_update() {
                    Ok(view) => (shown.view, shown.trouble) = (view.as_deref().cloned(), None),
                    Err(error) => shown.trouble = Some(error.to_string()),
                }
                continue;
            }
            event = keys.next() => event,
            _ = end.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
        };
        // Without keys nobody could end it.
        let Some(event) = event.transpose()? else { return Ok(()) };
        let page = isize::try_from(terminal.size()?.height.saturating_sub(2)).unwrap_or(1);
        match wish(&event) {
            Wish::Quit => return Ok(()),
            Wish::Lines(lines) => shown.top = shown.top.saturating_add_signed(lines),
            Wish::Screens(screens) => {
                shown.top = shown.top.saturating_add_signed(screens.saturating_mul(page))
            }
            Wish::Nothing => {}
        }
    }
}

fn wish(event: &Event) -> Wish {
    let Event::Key(key) = event else { return Wish::Nothing };
    if key.kind == KeyEventKind::Release {
        return Wish::Nothing;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Wish::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Wish::Quit,
        KeyCode::Down | KeyCode::Char('j') => Wish::Lines(1),
        KeyCode::Up | KeyCode::Char('k') => Wish::Lines(-1),
        KeyCode::PageDown | KeyCode::Char(' ') => Wish::Screens(1),
        KeyCode::PageUp => Wish::Screens(-1),
        KeyCode::Home | KeyCode::Char('g') => Wish::Screens(isize::MIN),
        KeyCode::End | KeyCode::Char('G') => Wish::Screens(isize::MAX),
        _ => Wish::Nothing,
    }
}

fn draw(frame: &mut Frame<'_>, shown: &mut Shown) {
    let [body, foot] = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    let lines = shown.view.as_ref().map_or_else(|| vec![Line::from("waiting for the gateway")], lines::of);
    // The last line is never above the foot.
    shown.top = shown.top.min(lines.len().saturating_sub(usize::from(body.height)));
    let below = lines.len() - shown.top - lines.len().min(usize::from(body.height));
    let visible: Vec<Line<'_>> = lines.into_iter().skip(shown.top).collect();
    frame.render_widget(Paragraph::new(visible), body);
    let more = if below > 0 { format!(" · {below} lines more below (↓)") } else { String::new() };
    let foot_line = match &shown.trouble {
        Some(trouble) => Line::from(Span::styled(
            format!("as it was; no word since: {trouble}"),
            Style::new().fg(Color::Black).bg(Color::Yellow),
        )),
        None => Line::from(Span::styled(format!("q ends{more}"), Style::new().fg(Color::DarkGray))),
    };
    frame.render_widget(Paragraph::new(foot_line), foot);
}

#[cfg(test)]
mod tests;
