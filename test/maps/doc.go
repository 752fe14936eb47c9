// Package maps runs maps, lint and instrument, the verbs on files, and checks what they print.
package maps
