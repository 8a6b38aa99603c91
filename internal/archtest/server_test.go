package archtest

import (
	"fmt"
	"strings"
	"testing"
)

// What a library user imports stays light: no package of the root module, examples included, links anything of the
// server, nor a module that only the server asks for. The table of layers would say so of imports too; this holds for
// all that is linked, and for lines that the table will get.
func checkServer(p listing, ofServer []string) []string {
	var findings []string
	for _, path := range p.Deps {
		switch {
		case path == modulePath+"/server" || strings.HasPrefix(path, modulePath+"/server/"):
		case fitsAny(ofServer, path):
		default:
			continue
		}
		findings = append(findings, fmt.Sprintf("%s links %s, which is the server's", place(p.ImportPath), place(path)))
	}
	return findings
}

// serverModules are what the server is made of, and nothing else of ours.
var serverModules = []string{
	"github.com/danielgtaylor/huma/v2/...", "github.com/spf13/...", "github.com/BurntSushi/toml/...", "github.com/prometheus/...",
	"go.opentelemetry.io/...", "charm.land/...",
}

func TestU8_AUsersProgramLinksNothingOfTheServer(t *testing.T) {
	root, err := top()
	if err != nil {
		t.Fatal(err)
	}
	tree(t) // so that a cached verdict is dropped when the source changes
	packages, err := listPackages(root)
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, p := range packages {
		if strings.HasPrefix(place(p.ImportPath), "examples/") {
			examples++
		}
		for _, finding := range checkServer(p, serverModules) {
			t.Error(finding)
		}
	}
	if examples == 0 {
		t.Error("no example is among the packages: the rule would hold for want of anything to read")
	}
}

func TestU8_RuleOfTheServerCatches(t *testing.T) {
	links := func(paths ...string) []string {
		return checkServer(listing{ImportPath: modulePath + "/examples/shop", Deps: paths}, serverModules)
	}
	finds(t, links("net/http", modulePath+"/server/httpapi"), "examples/shop links server/httpapi")
	finds(t, links("github.com/spf13/cobra", "github.com/danielgtaylor/huma/v2"), "spf13/cobra", "huma")
	finds(t, links("net/http", modulePath+"/store/sqlite", modulePath+"/servers"))
}
