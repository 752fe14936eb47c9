// Package frames runs frames and explain on processes in good and bad states, and checks what they print.
package frames
