"""The notices join the types of messages: they go at no moment of their own."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('appointments', '0003_versions'),
        ('reminders', '0010_given_up'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='reminderrule',
            name='rule_in_words_that_are_known',
        ),
        migrations.RemoveConstraint(
            model_name='reminderrule',
            name='rule_before_or_after_as_its_type',
        ),
        migrations.AlterField(
            model_name='notificationpreference',
            name='reminder_type',
            field=models.CharField(choices=[('preparacion', 'Preparación'), ('cita_proxima', 'Cita próxima'), ('llegada', 'Llegada'), ('seguimiento', 'Seguimiento'), ('control', 'Control'), ('reserva', 'Aviso de reserva'), ('cambio', 'Aviso de cambio'), ('cancelacion', 'Aviso de cancelación')], max_length=20, verbose_name='tipo'),
        ),
        migrations.AlterField(
            model_name='reminderdelivery',
            name='reminder_type',
            field=models.CharField(choices=[('preparacion', 'Preparación'), ('cita_proxima', 'Cita próxima'), ('llegada', 'Llegada'), ('seguimiento', 'Seguimiento'), ('control', 'Control'), ('reserva', 'Aviso de reserva'), ('cambio', 'Aviso de cambio'), ('cancelacion', 'Aviso de cancelación')], max_length=20, verbose_name='tipo'),
        ),
        migrations.AlterField(
            model_name='reminderrule',
            name='offset_minutes',
            field=models.IntegerField(help_text='Negativo: antes de la cita. 24 horas antes es -1440; 2 horas antes, -120. Avisos: 0.', verbose_name='cuándo, en minutos'),
        ),
        migrations.AlterField(
            model_name='reminderrule',
            name='reminder_type',
            field=models.CharField(choices=[('preparacion', 'Preparación'), ('cita_proxima', 'Cita próxima'), ('llegada', 'Llegada'), ('seguimiento', 'Seguimiento'), ('control', 'Control'), ('reserva', 'Aviso de reserva'), ('cambio', 'Aviso de cambio'), ('cancelacion', 'Aviso de cancelación')], max_length=20, verbose_name='tipo'),
        ),
        migrations.AddConstraint(
            model_name='reminderrule',
            constraint=models.CheckConstraint(condition=models.Q(('channels__contained_by', ['whatsapp', 'email', 'push', 'in_app']), ('offset_unit__in', ['minutes', 'hours', 'days', 'months']), ('reminder_type__in', ['preparacion', 'cita_proxima', 'llegada', 'seguimiento', 'control', 'reserva', 'cambio', 'cancelacion'])), name='rule_in_words_that_are_known'),
        ),
        migrations.AddConstraint(
            model_name='reminderrule',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('offset_minutes__lt', 0), ('reminder_type__in', ['cita_proxima', 'preparacion', 'llegada'])), models.Q(('offset_minutes__gt', 0), ('reminder_type__in', ['seguimiento', 'control'])), models.Q(('offset_minutes', 0), ('offset_unit', 'minutes'), ('reminder_type__in', ['cambio', 'cancelacion', 'reserva'])), _connector='OR'), name='rule_before_or_after_as_its_type', violation_error_message='Los recordatorios previos van antes de la cita (minutos negativos); seguimiento y control, después (positivos); los avisos salen al ocurrir lo que avisan (0 minutos).'),
        ),
    ]
