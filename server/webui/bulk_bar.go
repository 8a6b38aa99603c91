package webui

import "html/template"

// fitting are the verbs that make sense for all jobs of a view.
func fitting(view string) []string {
	switch view {
	case "dead", "cancelled":
		return []string{"retry", "delete"}
	case "ready", "scheduled":
		return []string{"cancel", "requeue", "priority", "delete"}
	case "suspended":
		return []string{"cancel", "requeue", "delete"}
	case "running":
		return []string{"cancel"}
	case "done":
		return []string{"delete"}
	case "":
		return []string{"retry", "cancel"}
	}
	return nil
}

// askAll offers what can be done to all jobs that a list has.
func askAll(a *act) (*dialog, error) {
	_, q, err := a.bulkOf()
	if err != nil {
		return nil, err
	}
	n, err := a.app.e.Count(a.ctx, q.filter(a.Now), 0)
	if err != nil {
		return nil, err
	}
	d := &dialog{Title: plural(n, "job matches", "jobs match") + ".",
		Text: "What shall be done to them? Nothing is done yet: the next step says what would change.", Facts: []fact{{"Which", a.words(q)}}}
	for _, verb := range fitting(q.View) {
		values := q.values()
		values.Set("all", "1")
		values.Set("view", q.View)
		values.Set("back", a.get("back"))
		d.Choices = append(d.Choices, choice{Text: a.app.action("jobs", verb).label, Link: a.app.link("/ask/jobs/"+verb) + "?" + values.Encode(),
			Bad: verb == "delete"})
	}
	return d, nil
}

// choice is a way to go on from a dialog.
type choice struct {
	Text, Link string
	Bad        bool
}

// RetryAll is the button that retries all dead jobs of a narrowed list: who comes from an error that the overview names wants that.
func (v *view) RetryAll() (template.HTML, error) {
	d, ok := v.data.(*jobsData)
	if !ok || d.View.Name != "dead" || d.Empty || !d.Query.narrow() || d.Query.Text != "" {
		return "", nil
	}
	pairs := []any{"view", d.View.Name, "all", "1", "label", "Retry all…", "class", ""}
	for name, values := range d.Query.values() {
		if name != "order" {
			pairs = append(pairs, name, values[0])
		}
	}
	return v.Button("jobs", "retry", pairs...)
}

// bulkButton is one of the bar of what is ticked.
type bulkButton struct{ Verb, Label, Class, Ask string }

// BulkVerbs are the buttons for jobs that are ticked.
func (v *view) BulkVerbs() (list []bulkButton) {
	for _, verb := range []string{"retry", "run", "cancel", "requeue", "priority", "delete"} {
		if one := v.app.action("jobs", verb); v.Can(one.role) {
			list = append(list, bulkButton{verb, one.label, one.class, v.app.link("/ask/jobs/"+verb, "back", v.app.opts.Prefix+v.path)})
		}
	}
	return list
}

// BulkAll is the address of the dialog for all that match; empty where a list cannot be changed as a whole.
func (v *view) BulkAll() string {
	d, ok := v.data.(*jobsData)
	if !ok || d.Query.Text != "" || d.Query.View == "retries" || fitting(d.Query.View) == nil {
		return ""
	}
	values := d.Query.values()
	values.Set("all", "1")
	values.Set("view", d.Query.View)
	return v.app.link("/ask/jobs/all") + "?" + values.Encode()
}
