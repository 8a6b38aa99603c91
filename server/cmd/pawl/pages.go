package main

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// pageFlags are those of a list that has pages.
func pageFlags(cmd *cobra.Command, limit int) *cobra.Command {
	cmd.Flags().Int("limit", limit, "entries of a page")
	cmd.Flags().String("after", "", "`cursor` of the page before")
	cmd.Flags().Bool("all", false, "all pages")
	return cmd
}

// pages reads a page of a list, or all. add takes one and returns the cursor of the next.
// For people the table is written in the end; as JSON each page is printed as it came.
func pages[T any](c *call, path string, query url.Values, t *table, add func(*T) (next string)) error {
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", strconv.Itoa(c.number("limit")))
	if text := c.flag("after"); text != "" {
		query.Set("after", text)
	}
	for {
		var page T
		if _, err := c.read(path, query, &page); err != nil {
			return err
		}
		next := add(&page)
		if next != "" && c.on("all") {
			query.Set("after", next)
			continue
		}
		if c.json {
			return nil
		}
		if err := t.write(c.out); err != nil {
			return err
		}
		if next != "" {
			fmt.Fprintln(c.err, "there are more: --all, or --after", next)
		}
		return nil
	}
}

// parameters are flags of text that are parameters of the API by the same name.
func (c *call) parameters(names ...string) url.Values {
	query := url.Values{}
	for _, name := range names {
		if text := c.flag(name); text != "" {
			query.Set(name, text)
		}
	}
	return query
}

// times adds parameters that are times.
func (c *call) times(query url.Values, names ...string) error {
	for _, name := range names {
		text := c.flag(name)
		if text == "" {
			continue
		}
		t, err := c.readTime(name, text)
		if err != nil {
			return err
		}
		query.Set(name, t.UTC().Format("2006-01-02T15:04:05.999999999Z07:00"))
	}
	return nil
}
