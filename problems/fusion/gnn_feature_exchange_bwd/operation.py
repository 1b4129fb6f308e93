"""Gradients of ragged lists to the owners of the rows, added up in the order of (source, entry)."""
import torch
import torch.distributed as dist


def operation(counts, ids, grads, out) -> None:
    """counts: [world] int32, ids: [most] int32, grads: [most, width], out: [rows, width]; float32."""
    sent = counts.tolist()
    came = torch.empty_like(counts)
    dist.all_to_all_single(came, counts)
    came, total = came.tolist(), sum(sent)
    rows = torch.empty(sum(came), dtype=ids.dtype, device=ids.device)
    dist.all_to_all_single(rows, ids[:total], came, sent)
    values = torch.empty(sum(came), grads.shape[1], dtype=grads.dtype, device=grads.device)
    dist.all_to_all_single(values, grads[:total], came, sent)
    out.zero_()
    for row, value in zip(rows.tolist(), values):
        out[row] += value


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for rows, quads, most in ((128, 4, 128), (512, 16, 512)):
        counts = torch.full((world,), most // world, dtype=torch.int32, device="cuda")
        ids = torch.randint(0, rows, (most,), dtype=torch.int32, device="cuda")
        grads = torch.rand(most, 4 * quads, device="cuda") * 2 - 1
        operation(counts, ids, grads, torch.empty(rows, 4 * quads, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
