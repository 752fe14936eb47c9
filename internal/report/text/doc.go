// Package text prints the results of verbs, as text for people and as JSON.
//
// Each function that begins with Print takes typed data and a writer; none opens a target. [Style] colours words, [Fold] breaks lines that are
// wider than the terminal, and [WriteJSON] writes an object.
//
// # Security
//
// Names and values come from a target, which may be hostile. All text of a target passes through [Printable] or [SafeJSON], so that a terminal obeys
// no control characters in it.
package text
