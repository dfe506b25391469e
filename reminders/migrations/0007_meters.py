"""The counts behind the metrics, and a quick look at the visits whose planning fails."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reminders", "0006_room")]

    operations = [
        migrations.CreateModel(
            name="Meter",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "name", "channel", "label", "part", blank=True, editable=False,
                        primary_key=True, serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=20)),
                ("channel", models.CharField(max_length=10)),
                ("label", models.CharField(max_length=20)),
                ("part", models.SmallIntegerField()),
                ("value", models.FloatField()),
            ],
        ),
        # A few rows, changed with each batch: room beside them, so that a change
        # stays on its page and touches no index.
        migrations.RunSQL(
            "ALTER TABLE reminders_meter SET (fillfactor = 20, autovacuum_vacuum_threshold = 1000)",
            "ALTER TABLE reminders_meter RESET (fillfactor, autovacuum_vacuum_threshold)",
        ),
        migrations.AddIndex(
            model_name="mark",
            index=models.Index(
                condition=models.Q(("not_before__isnull", False)), fields=["tries"], name="mark_postponed"
            ),
        ),
    ]
