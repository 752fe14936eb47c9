//go:build !unix

package newfile

import "os"

// foreign returns false: the owner of a file is not available on this system.
func foreign(os.FileInfo) bool { return false }
