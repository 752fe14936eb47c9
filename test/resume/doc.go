// Package resume runs resume, with the user's own interpreter and with --commit.
package resume
