package main

import (
	_ "embed" // for version.txt
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// archived is "$Format:...$" in a checkout. In what git archive writes, and where a hoster offers an archive of a commit, git has put in its place
// (gitattributes(5), export-subst): the nearest tag with the distance from it, where there is a tag, the commit, and its time in seconds since 1970.
//
//go:embed version.txt
var archived string

// version says which build this is: by the tag or the commit that Go recorded from git, or git in an archive.
func version() string {
	v := archivedVersion(archived)
	if v == "" {
		v = "(unknown)"
		if info, ok := debug.ReadBuildInfo(); ok {
			v = info.Main.Version
		}
	}
	return fmt.Sprintf("%s, %s, %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// archivedVersion is the tag, with the distance from it, or else the commit, of an archive, and "" of what is none.
func archivedVersion(text string) string {
	fields := strings.Fields(text)
	switch {
	case strings.HasPrefix(text, "$Format:"):
		return ""
	case len(fields) == 3:
		return fields[0]
	case len(fields) == 2:
		return fields[0][:min(12, len(fields[0]))]
	}
	return ""
}
