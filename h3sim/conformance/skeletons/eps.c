/* Driver of a small EPS scheduler (RFC 9218): non-incremental responses of an urgency first.
   Requests have their keys in a fixed order, so that sscanf reads them. */
#include <stdio.h>
#include <string.h>

#define MAX 8192
static struct stream { long id, place; int urgency, incremental, active; } streams[MAX];
static int n_streams;

static struct stream *find(long id) {
    for (int i = 0; i < n_streams; i++)
        if (streams[i].id == id) return &streams[i];
    return NULL;
}

static int before(const struct stream *s, const struct stream *t) {
    if (s->urgency != t->urgency) return s->urgency < t->urgency;
    if (s->incremental != t->incremental) return t->incremental;
    return s->incremental ? s->place < t->place : s->id < t->id;
}

static void set(long id, const char *line, long now) {
    struct stream *s = find(id);
    const char *eps = strstr(line, "\"urgency\":");
    int urgency = 3, incremental = strstr(line, "\"incremental\":true") != NULL;
    if (eps) sscanf(eps, "\"urgency\":%d", &urgency);
    if (!s && n_streams < MAX) *(s = &streams[n_streams++]) = (struct stream){.id = id};
    if (!s || (s->urgency == urgency && s->incremental == incremental)) return;
    s->urgency = urgency, s->incremental = incremental, s->place = now;
}

int main(void) {
    char line[1024], op[16];
    for (long now = 1; fgets(line, sizeof line, stdin); now++) {
        long id = -1;
        struct stream *s, *best = NULL;
        sscanf(line, "{\"op\":\"%15[a-z]\",\"stream\":%ld", op, &id);
        s = find(id);
        if (!strcmp(op, "hello")) puts("{\"protocol\":\"h3sim-conformance/1\",\"name\":\"c-eps\"}");
        else if (!strcmp(op, "reset")) n_streams = 0;
        else if (!strcmp(op, "open") || !strcmp(op, "update")) set(id, line, now);
        else if (!strcmp(op, "pick")) {
            for (int i = 0; i < n_streams; i++)
                if (streams[i].active && (!best || before(&streams[i], best))) best = &streams[i];
            if (best) printf("{\"stream\":%ld}\n", best->id);
            else puts("{\"stream\":null}");
        } else if (s && !strcmp(op, "activate")) { if (!s->active) s->active = 1, s->place = now; }
        else if (s && !strcmp(op, "deactivate")) s->active = 0;
        else if (s && !strcmp(op, "close")) *s = streams[--n_streams];
        else if (s && !strcmp(op, "charge")) s->place = now;
        fflush(stdout);
    }
}
