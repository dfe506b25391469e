"""Indexes that others serve already: each of them was written anew with every step of every message."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('appointments', '0002_triggers'),
        ('reminders', '0007_meters'),
    ]

    operations = [
        migrations.AlterField(
            model_name='deliveryattempt',
            name='delivery',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='reminders.reminderdelivery', verbose_name='envío'),
        ),
        migrations.AlterField(
            model_name='deliveryattempt',
            name='reply',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='reminders.reply', verbose_name='respuesta'),
        ),
        migrations.AlterField(
            model_name='reminderdelivery',
            name='appointment',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='appointments.appointment', verbose_name='cita'),
        ),
        migrations.AlterField(
            model_name='reminderdelivery',
            name='fallback_of',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, to='reminders.reminderdelivery', verbose_name='en lugar de'),
        ),
    ]
