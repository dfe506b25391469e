"""The inbox of the application, and the addresses that lead nowhere."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Lower, Now

CHANNELS = [
    ("whatsapp", "WhatsApp"),
    ("email", "Correo"),
    ("push", "Notificación en el teléfono"),
    ("in_app", "Bandeja de la aplicación"),
]

# A retired address, and one that is given back, plans whoever has it anew: see 0002_marks.
ROWS = {
    "INSERT": "NEW TABLE AS new_rows",
    "UPDATE": "NEW TABLE AS new_rows OLD TABLE AS old_rows",
    "DELETE": "OLD TABLE AS old_rows",
}
WATCH = "".join(
    f"CREATE TRIGGER reminders_mark_{event.lower()} AFTER {event} ON reminders_retiredcontact"
    f" REFERENCING {rows} FOR EACH STATEMENT EXECUTE FUNCTION reminders_mark_addresses();\n"
    for event, rows in ROWS.items()
)
FORGET = "".join(f"DROP TRIGGER reminders_mark_{event.lower()} ON reminders_retiredcontact;\n" for event in ROWS)


class Migration(migrations.Migration):
    dependencies = [
        ("reminders", "0004_falls"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="RetiredContact",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("address", models.CharField(max_length=200, verbose_name="dirección")),
                ("channel", models.CharField(choices=CHANNELS, max_length=10, verbose_name="canal")),
                (
                    "why",
                    models.CharField(
                        choices=[
                            ("bounced", "Rebotó: no existe o ya no recibe mensajes"),
                            ("inactive", "El proveedor de correo ya no le escribe, porque rebotó o se quejó antes"),
                            ("invalid", "No está bien escrita"),
                        ],
                        max_length=10,
                        verbose_name="motivo",
                    ),
                ),
                ("at", models.DateTimeField(db_default=Now(), editable=False, verbose_name="desde")),
            ],
            options={
                "verbose_name": "dirección que no sirve",
                "verbose_name_plural": "direcciones que no sirven",
                "ordering": ["-at"],
                "constraints": [
                    models.UniqueConstraint(fields=["address", "channel"], name="retired_once_per_address"),
                    models.CheckConstraint(
                        condition=models.Q(address=Lower("address")), name="retired_in_lower_case"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("subject", models.CharField(max_length=300, verbose_name="asunto")),
                ("body", models.TextField(verbose_name="mensaje")),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False, verbose_name="recibido")),
                ("read_at", models.DateTimeField(blank=True, null=True, verbose_name="leído")),
                (
                    "about",
                    models.ForeignKey(
                        blank=True, editable=False, null=True, on_delete=django.db.models.deletion.CASCADE,
                        to="appointments.patient", verbose_name="paciente",
                    ),
                ),
                (
                    "delivery",
                    models.OneToOneField(
                        blank=True, editable=False, null=True, on_delete=django.db.models.deletion.CASCADE,
                        to="reminders.reminderdelivery", verbose_name="envío",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="notifications",
                        to=settings.AUTH_USER_MODEL, verbose_name="para",
                    ),
                ),
            ],
            options={
                "verbose_name": "aviso",
                "verbose_name_plural": "avisos",
                "ordering": ["-created_at", "-id"],
                "indexes": [models.Index(fields=["user", "-created_at"], name="notification_latest")],
            },
        ),
        migrations.AddIndex(
            model_name="contactoptout", index=models.Index(Lower("address"), name="opt_out_in_lower_case")
        ),
        migrations.RunSQL(WATCH, FORGET),
    ]
