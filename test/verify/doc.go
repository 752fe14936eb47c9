// Package verify runs verify and stress, also on programs that are compiled wrong.
package verify
